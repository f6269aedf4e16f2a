"""The detectors that a release asks for, with what it asks for: nothing else is scored in their name."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pytest

from calibrate import registry, workspace
from calibrate.detectors.base import scored
from calibrate.detectors.entropy_z import EntropyZ
from calibrate.detectors.token_overlap import TokenOverlap
from calibrate.errors import BadInput
from calibrate.runtime import Scored, Scorer, decide, load
from calibrate.runtime.planning import is_sampled, revision_of
from calibrate.thresholds import (
    Cuts,
    DetectorEntry,
    EnsembleEntry,
    EnsembleMetrics,
    Sampling,
    ThresholdsFile,
    baselines,
    encode,
    read,
)
from calibrate.types import Baseline, FlagWhen, Interval, Score, Source, Token, Trace
from tests.thresholds.make import entry, release

WORDS = "The bridge over the river was built in 1931 and painted red."
NO_PARAMS: dict[str, object] = {}


def trace(name: str = "t", answer: str = WORDS, **more: object) -> Trace:
    return Trace(name, answer, question="When was it built?", sources=(Source("1", WORDS),), **more)  # type: ignore[arg-type]


class Fake:
    """A detector of somebody else's: the length of the answer, or what a test puts in its place."""

    name: ClassVar[str] = "fake"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Fake"
    unit: ClassVar[str] = "characters"
    needs: ClassVar[frozenset[str]] = frozenset()
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0, 1e9)
    usual_threshold: ClassVar[float] = 1
    asked: ClassVar[list[str]] = []
    why_not: ClassVar[str | None] = None

    def revision(self) -> str:
        return "model@1"

    def unavailable(self) -> str | None:
        return self.why_not

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        for one in traces:
            self.asked.append(one.id)
            if "boom" in one.answer:
                raise RuntimeError("boom")
            yield scored(one, len(one.answer))


def kind(name: str, **changes: object) -> type[Fake]:
    made = type(name, (Fake,), {"name": name, "asked": [], **changes})
    return dataclasses.dataclass(frozen=True)(made)  # type: ignore[return-value]


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Callable[..., type[Fake]]:
    """Adds a detector to those there are, as a package of somebody else's does."""
    known = dict(registry._load_classes())
    monkeypatch.setattr(registry, "_load_classes", lambda: known)

    def add(name: str, **changes: object) -> type[Fake]:
        made = kind(name, **changes)
        known[name] = made  # type: ignore[assignment]
        return made

    return add


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What the log says of detectors; that an answer was not scored is test_guard's."""
    caplog.set_level(logging.INFO, "touchstone")
    return lambda: [
        record.getMessage() for record in caplog.records if record.name == "touchstone" and record.module != "notices"
    ]


def asks(**entries: DetectorEntry) -> ThresholdsFile:
    return release(dict(entries))


def ours(threshold: float = 5.0, **changes: object) -> DetectorEntry:
    return entry(threshold, "above", **{"params": NO_PARAMS, "revision": "model@1", **changes})


def test_the_detectors_of_the_release_run_with_its_parameters() -> None:
    plain, default = ({"variant": variant} for variant in ("plain", "default"))
    answer = "It was built in 1931 by the town, which had no money."
    for params in (plain, default):
        file = asks(
            token_overlap=entry(0.5, params=params, version=registry.get("token_overlap").version),
            bleu=entry(0.1, tier="off"),
        )
        (one,) = Scorer(file).score([trace(answer=answer)])
        (expected,) = registry.make("token_overlap", params).score([trace(answer=answer)])
        assert one.numbers == {"token_overlap": expected.value}  # nobody asks bleu, of tier off
        assert one.decision == decide(file, {"token_overlap": expected.value})
        assert one.seconds["token_overlap"] > 0
        assert one.skipped == {}
    assert Scorer(file, detectors=[]).score([trace()])[0].scores == {}
    with pytest.raises(BadInput, match="detectors cannot be 'bleu'; give a list of names"):
        Scorer(file, detectors="bleu")


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"version": "0"}, "failed", "scores of version 0; here it is 1"),
        ({"revision": "model@0"}, "failed", "scores of revision model@0; here it is model@1"),
        ({"revision": ""}, "failed", "scores of revision (none); here it is model@1"),
        ({"revision": "model@1+refusals:0a1b2c3d"}, "failed", "model@1+refusals:0a1b2c3d; here it is model@1"),
        ({"params": {"depth": 3}}, "failed", "has no parameter 'depth'"),
    ],
)
def test_a_score_made_otherwise_does_not_belong_to_the_threshold(
    others: Callable[..., type[Fake]],
    said: Callable[[], list[str]],
    changes: dict[str, object],
    status: str,
    reason: str,
) -> None:
    fake = others("fake")
    scorer = Scorer(asks(fake=ours(**changes)))
    for _ in range(3):
        (one,) = scorer.score([trace()])
        assert (one.scores["fake"].value, one.scores["fake"].status) == (None, status)
        assert reason in str(one.scores["fake"].reason)
        assert (one.decision.missing, one.seconds) == (("fake",), {})
    assert fake.asked == []
    assert [reason in line for line in said()] == [True]


def test_own_lists_of_refusals_are_part_of_the_revision(others: Callable[..., type[Fake]]) -> None:
    others("fake")
    others("strict", scores_refusals=True)
    own = workspace.Workspace(files={"refusals/en.txt": "[declines]\nnope\n"})
    with workspace.using(own):
        revision = revision_of(registry.make("fake"))
        assert revision.startswith("model@1+refusals:")
        assert revision_of(registry.make("strict")) == "model@1"  # it scores refusals too: no list decides
        (one,) = Scorer(asks(fake=ours(revision=revision))).score([trace()])
        assert one.scores["fake"].value == len(WORDS)
        (other,) = Scorer(asks(fake=ours())).score([trace()])
        assert other.scores["fake"].value is None


def test_one_that_is_not_here_or_has_no_model(
    others: Callable[..., type[Fake]], said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = others("fake", why_not="the model is missing; install it with `pip install it`")
    scorer = Scorer(asks(fake=ours(), gone=ours(), token_overlap=entry(0.5, params={}, version=TokenOverlap.version)))
    (one,) = scorer.score([trace()])
    assert {name: score.status for name, score in one.scores.items()} == {
        "fake": "abstained",
        "gone": "failed",
        "token_overlap": "scored",
    }
    assert "no detector 'gone'" in str(one.scores["gone"].reason)
    fake.why_not = None
    assert scorer.score([trace()])[0].scores["fake"].value is None  # not looked for at every trace
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert scorer.score([trace()])[0].scores["fake"].value == len(WORDS)
    assert len(said()) == 2


def test_a_detector_that_raises_fails_for_its_trace_alone(
    others: Callable[..., type[Fake]], said: Callable[[], list[str]]
) -> None:
    others("fake")
    found = Scorer(asks(fake=ours(), token_overlap=entry(0.5, params={}, version=TokenOverlap.version))).score(
        [trace("a"), trace("b", "boom " + WORDS), trace("c"), trace("d", "boom")]
    )
    assert [one.scores["fake"].status for one in found] == ["scored", "failed", "scored", "failed"]
    assert "RuntimeError: boom" in str(found[1].scores["fake"].reason)
    assert all(one.scores["token_overlap"].status == "scored" for one in found)
    assert len(said()) == 1


def test_a_package_that_a_detector_lacks_is_named_with_what_installs_it(
    others: Callable[..., type[Fake]], said: Callable[[], list[str]]
) -> None:
    def lacks(package: str) -> Callable[..., Iterator[Score]]:
        def score(*_: object) -> Iterator[Score]:
            raise ModuleNotFoundError(f"No module named '{package}'")

        return score

    others("fake", score=lacks("rapidfuzz.distance"))
    others("theirs", score=lacks("spacy"))
    scorer = Scorer(asks(fake=ours(), theirs=ours()))
    for _ in range(2):
        assert scorer.score([trace()])[0].decision.missing == ("fake", "theirs")
    first, second = said()
    assert first.startswith("fake gives no score: ModuleNotFoundError")
    assert first.endswith("pip install touchstone[lexical]")
    assert second.endswith("pip install spacy")


def raising(*_: object) -> Iterator[Score]:
    raise SyntaxError("no such thing")


@pytest.mark.parametrize("where", ["revision", "unavailable", "score"])
def test_whatever_a_detector_raises_others_go_on(others: Callable[..., type[Fake]], where: str) -> None:
    others("fake", **{where: raising})
    (one,) = Scorer(asks(fake=ours(), token_overlap=entry(0.5, params={}, version=TokenOverlap.version))).score(
        [trace()]
    )
    assert (one.scores["fake"].value, one.scores["fake"].status) == (None, "failed")
    assert "SyntaxError" in str(one.scores["fake"].reason)
    assert one.scores["token_overlap"].value is not None


def test_sampling_is_by_share_and_attributes_and_always_the_same() -> None:
    traces = [trace(f"t{number}", attributes={"stakes": "high", "n": 1, "vip": True}) for number in range(4_000)]
    for rate in (0.01, 0.3, 1.0):
        drawn = [is_sampled(Sampling(rate, {"stakes": "high"}), "d", one) for one in traces]
        # Within five standard errors of a binomial share.
        assert abs(sum(drawn) - rate * 4_000) <= 5 * (rate * (1 - rate) * 4_000) ** 0.5
        assert drawn == [is_sampled(Sampling(rate, {"n": "1", "vip": "true"}), "d", one) for one in traces]
    tenth = [{one.id for one in traces if is_sampled(Sampling(0.1), name, one)} for name in ("d", "e")]
    assert len(tenth[0] & tenth[1]) < 0.02 * 4_000  # independent of each other: 1% in both, not 10%
    for wanted in ({"stakes": "low"}, {"vip": "True"}, {"none": ""}, {"stakes": "high", "n": "2"}):
        assert not any(is_sampled(Sampling(1.0, wanted), "d", one) for one in traces)
    share = int("02766dd3d76af0d8", 16) / 2**64  # printf 'd\0t0' | b2sum -l 64
    assert is_sampled(Sampling(share + 1e-9), "d", traces[0])
    assert not is_sampled(Sampling(share - 1e-9), "d", traces[0])


def test_a_detector_runs_on_the_traces_its_sampling_names(others: Callable[..., type[Fake]]) -> None:
    fake = others("fake")
    scorer = Scorer(asks(fake=ours(sampling=Sampling(1.0, {"stakes": "high"}))))
    high, low = scorer.score([trace("h", attributes={"stakes": "high"}), trace("l")])
    assert fake.asked == ["h"]
    assert (high.decision.scored, low.decision.missing) == (("fake",), ("fake",))
    assert (low.scores, low.skipped) == ({}, {"fake": "runs on 100% of stakes=high"})


def cascade(pass_at: float | None) -> EnsembleEntry:
    standing = {"flag_when": "above", "knots": [0.0, 100.0], "above": [1.0, 0.0], "normals": [-2.0, 2.0]}
    cheap = {"form": "weighted", "weights": {"cheap": 1.0}, "standings": {"cheap": standing}}
    rule = {"form": "cascade", "filter": cheap, "pass_at": pass_at, "expensive": "judge", "standing": standing}
    one = Interval(0.5, 0.4, 0.6)
    return EnsembleEntry(rule, ("cheap", "judge"), Cuts(None, 1.2), EnsembleMetrics(one, one, one, 10, 5), 0.1)


@pytest.mark.parametrize(
    ("pass_at", "judged", "tier", "alone"),
    [
        (0.0, ["long"], "off", True),  # the filter is the normal of the length: 0 at 50 characters
        (None, ["long", "short"], "off", True),
        (0.0, ["long", "short"], "signal", True),  # it flags by itself too
        (0.0, ["long", "short"], "off", False),  # another ensemble reads it
    ],
)
def test_a_cascade_asks_its_expensive_detector_only_where_it_must(
    others: Callable[..., type[Fake]], pass_at: float | None, judged: list[str], tier: str, alone: bool
) -> None:
    others("cheap")
    judge = others("judge")
    entries = {"cheap": ours(tier="off"), "judge": ours(90.0, tier=tier)}
    ensembles = {"two steps": cascade(pass_at)}
    if not alone:
        fixed = {"form": "fixed", "k": 1, "thresholds": {"judge": ["above", 5.0]}}
        ensembles["votes"] = dataclasses.replace(cascade(None), rule=fixed, members=("judge",), cuts=Cuts(None, 1.0))
    file = read(encode(release(entries, ensembles=ensembles)))
    long, short = Scorer(file).score([trace("long", "x" * 80), trace("short", "x" * 20)])
    assert judge.asked == judged
    assert ("judge" in short.skipped) == (judged == ["long"])
    # Where it was not asked, the ensemble decides as if it had been.
    assert "two steps" not in short.decision.flags or pass_at is None
    assert "two steps" in long.decision.flags
    both: dict[str, float | None] = {"cheap": 20.0, "judge": 20.0}
    if judged == ["long"]:
        assert decide(file, both).flags == short.decision.flags


def test_a_whole_batch_is_by_one_release(others: Callable[..., type[Fake]], tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(encode(asks(a=ours(), b=ours())))
    with load(path, reload_every=3600) as live:

        def reloading(self: Fake, traces: Sequence[Trace]) -> Iterator[Score]:
            path.write_bytes(encode(release({"a": ours(), "c": ours()}, version=3, replaces=2)))
            live.refresh()
            assert live.current.version == 3
            return Fake.score(self, traces)

        others("a", score=reloading)
        others("b")
        others("c")
        scorer = Scorer(live)
        found = scorer.score([trace("1"), trace("2")])
        assert {one.file.version for one in found} == {2}
        assert {frozenset(one.scores) for one in found} == {frozenset({"a", "b"})}
        assert found[0].decision.version == 2
        (after,) = scorer.score([trace("3")])
        assert (after.file.version, set(after.scores)) == (3, {"a", "c"})


def test_the_baselines_of_the_release_are_put_in_place() -> None:
    when = datetime(2026, 11, 1, tzinfo=UTC)
    fitted = {
        ("entropy/top_decile/top2", "m"): Baseline("entropy/top_decile/top2", "m", 0.1, 0.05, 40, when),
        ("entropy/top_decile/top5", "m"): Baseline("entropy/top_decile/top5", "m", 0.2, 0.07, 40, when),
    }
    tokens = (Token("Red", -0.7, (("Red", -0.7), ("Blue", -0.7))), Token(".", -0.01, ((".", -0.01), ("!", -5.0))))
    asked = trace(answer="Red.", tokens=tokens, model="m")
    with workspace.using(workspace.Workspace(baselines=fitted)):
        revision = EntropyZ().revision()
        (expected,) = EntropyZ().score([asked])
    assert expected.value is not None
    params = registry.config_of(EntropyZ())
    file = release(
        {"entropy_z": entry(2.5, "above", params=params, revision=revision)},
        baselines=baselines.to_json(fitted, "entropy_z"),
    )
    file = read(encode(file))
    assert baselines.from_json(file.baselines) == fitted
    with workspace.using(workspace.Workspace()):
        (one,) = Scorer(file).score([asked])
        assert one.numbers == {"entropy_z": expected.value}
        (bare,) = Scorer(dataclasses.replace(file, baselines={"m": {"entropy_z": {"x/centre": 1}}})).score([asked])
    with workspace.using(workspace.Workspace()):
        (bare,) = Scorer(dataclasses.replace(file, baselines={"m": {"entropy_z": {"x/centre": 1}}})).score([asked])
        assert bare.scores["entropy_z"].status == "failed"


def test_no_traces_no_scores() -> None:
    assert Scorer(asks(token_overlap=entry(0.5))).score([]) == []
    assert dataclasses.is_dataclass(Scored)
