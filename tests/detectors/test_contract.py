"""What every detector keeps, tried on every detector the registry finds: a new file is tested before it has a test."""

from __future__ import annotations

import json
import math
import pickle
import random
from dataclasses import fields, replace

import pytest

from calibrate import registry
from calibrate.detectors.base import Detector, missing
from calibrate.types import Trace
from tests.detectors.examples import awkward, complete, trace, variety

NAMES = registry.names()


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def detector(name: str) -> Detector:
    made = registry.make(name)
    if why := made.unavailable():
        pytest.skip(why)
    return made


def values(detector: Detector, traces: list[Trace]) -> list[float | None]:
    return [score.value for score in detector.score(traces)]


def variants(detector: Detector) -> tuple[str, ...]:
    """A detector of another package may have one way of doing it, and no parameter for that."""
    found = [one.choices for one in registry.parameters(type(detector)) if one.name == "variant"]
    return found[0] if found else ("default",)


def same(one: list[float | None], other: list[float | None]) -> bool:
    return len(one) == len(other) and all(
        a == b if a is None or b is None else math.isclose(a, b, abs_tol=1e-4) for a, b in zip(one, other, strict=True)
    )


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


def test_says_what_it_is(name: str) -> None:
    cls = registry.get(name)
    assert cls.name == name
    assert len((cls.__doc__ or "").split()) > 15
    assert cls.version
    assert cls.title
    assert cls.unit
    assert cls.flag_when in ("above", "below")
    assert cls.bounds[0] <= cls.usual_threshold <= cls.bounds[1]
    assert isinstance(registry.make(name), Detector)


def test_parameters_are_documented_and_json(name: str) -> None:
    made = registry.make(name)
    assert json.loads(json.dumps(registry.config_of(made))) == registry.config_of(made)
    assert [one.name for one in registry.parameters(type(made))] == [one.name for one in fields(made)]  # type: ignore[arg-type]
    assert all(one.help for one in registry.parameters(type(made)))
    assert registry.make(name, {key: str(value) for key, value in registry.config_of(made).items()}) == made


def test_pickles(name: str) -> None:
    made = registry.make(name)
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.model
def test_scores_what_has_all_it_needs(detector: Detector) -> None:
    (score,) = detector.score([complete(detector.name)])
    assert score.status == "scored", score.reason
    assert score.value is not None
    assert detector.bounds[0] - 1e-6 <= score.value <= detector.bounds[1] + 1e-6
    assert score.evidence
    for piece in score.evidence:
        if piece.start is not None and piece.end is not None:
            assert 0 <= piece.start < piece.end <= len(complete(detector.name).answer)


@pytest.mark.model
def test_abstains_without_what_it_needs(detector: Detector) -> None:
    full = complete(detector.name)
    empty = {"answer": {"answer": " "}, "sources": {"sources": ()}, "context": {"sources": (), "context": None},
             "tokens": {"tokens": None}, "alternatives": {"alternatives": ()}, "schema": {"schema": None},
             "question": {"question": None}, "retrieved": {"sources": ()}}  # fmt: skip
    for need in detector.needs:
        lacking = replace(full, **empty[need])  # type: ignore[arg-type]
        assert missing(detector.needs, lacking)
        (score,) = detector.score([lacking])
        assert (score.value, score.status) == (None, "abstained")
        assert score.reason


@pytest.mark.model
@pytest.mark.parametrize(
    ("name", "variant"), [(name, variant) for name in NAMES for variant in variants(registry.make(name))]
)
def test_awkward_traces_never_raise(detector: Detector, variant: str) -> None:
    made = registry.make(detector.name, {"variant": variant} if variant != "default" else {})
    traces = awkward()
    scores = list(made.score(traces))
    assert [score.trace_id for score in scores] == [one.id for one in traces]
    for score in scores:
        if score.status == "scored":
            assert score.value is not None
            assert math.isfinite(score.value)
            assert made.bounds[0] - 1e-5 <= score.value <= made.bounds[1] + 1e-5
        else:
            assert score.value is None
            assert score.reason
    assert not [score.reason for score in scores if "Error" in (score.reason or "")]


@pytest.mark.model
def test_batches_and_order_do_not_matter(detector: Detector) -> None:
    traces = variety(detector.name)
    together = values(detector, traces)
    assert any(value is not None for value in together)
    assert same([value for one in traces for value in values(detector, [one])], together)
    order = list(range(len(traces)))
    random.Random(7).shuffle(order)
    assert same(values(detector, [traces[i] for i in order]), [together[i] for i in order])


@pytest.mark.model
def test_a_megabyte_is_no_trouble(detector: Detector, monkeypatch: pytest.MonkeyPatch) -> None:
    from calibrate.backends.embedding import passages

    # The real budgets cost seconds a trace; what is tested is that they hold.
    monkeypatch.setattr(passages, "CLAIM_CHARACTERS", 3_000)
    monkeypatch.setattr(passages, "WINDOW_CHARACTERS", 6_000)
    long = "The warranty of the X200 lasts 24 months [1]. " * 22_000
    many = [f"Source number {i} says that part {i} costs {i} dollars. It does." for i in range(10_000)]
    scores = list(detector.score([trace(long, WARRANTY_PLUS), trace("Part 77 costs 77 dollars [78].", *many)]))
    assert len(scores) == 2
    assert all(score.seconds < 600 for score in scores)  # without the budgets they would take hours


WARRANTY_PLUS = "The warranty of the X200 lasts 24 months. " * 50
