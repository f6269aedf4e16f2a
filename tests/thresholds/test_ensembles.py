"""Ensembles, sampling and sample designs in the file: read back, compared, and refused where they cannot be."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from calibrate.errors import BadThresholds
from calibrate.thresholds import Cuts, Drawn, EnsembleEntry, Sampling, diff, encode, from_json, read, to_json, verify
from tests.thresholds.make import entry, release
from tests.thresholds.make_vectors import METRICS, PAIR, A, B, changed, ensemble

VOTE = {"form": "vote", "k": 1, "standings": {"a": A, "b": B}}
MEAN = {"form": "weighted", "weights": {"a": 1, "b": 2}, "standings": {"a": A, "b": B}}
FIRST = {"form": "weighted", "weights": {"a": 1}, "standings": {"a": A}}
CASCADE = {"form": "cascade", "filter": FIRST, "pass_at": 0.5, "expensive": "b", "standing": B}
FIXED = {"form": "fixed", "k": 2, "thresholds": {"a": ["above", 1], "b": ["below", 2]}}
GOOD = release(PAIR, ensembles={"g": ensemble(MEAN, "a b", page=2, signal=1)})
DESIGN = Drawn("stratified", "model", 12_000, 300, {"gpt": (9000, 200), "llama": (3000, 100)})


def test_a_release_without_them_is_written_as_before() -> None:
    document = to_json(release())
    assert "ensembles" not in document
    assert "samples" not in document["data"]
    assert "sampling" not in document["detectors"]["citation_grounding"]
    for path in (["ensembles"], ["data", "samples"]):
        with pytest.raises(BadThresholds, match=rf"{path[-1]} has an impossible value: {{}}"):
            from_json(changed(to_json(release()), *path, to={}))


@pytest.mark.parametrize("rule", [VOTE, MEAN, CASCADE, FIXED])
def test_every_form_is_read_back(rule: dict[str, Any]) -> None:
    file = release(PAIR, ensembles={"several words": ensemble(rule, "a b", signal=0.5)})
    assert read(encode(file)) == file
    back = read(encode(file)).ensembles["several words"]
    assert (back.rule, back.cuts, back.metrics) == (rule, Cuts(None, 0.5), METRICS)


def test_sampling_of_all_traces_is_none() -> None:
    assert entry(sampling=Sampling()).sampling is None
    some = to_json(release({"d": entry(sampling=Sampling(0.25, {"stakes": "high"}))}))
    assert some["detectors"]["d"]["sampling"] == {"rate": 0.25, "only_when": {"stakes": "high"}}
    document = to_json(release({"d": entry(sampling=Sampling(0.25))}))
    with pytest.raises(BadThresholds, match="sampling is of all traces"):
        from_json(changed(document, "detectors", "d", "sampling", "rate", to=1))


OF = ("ensembles", "g")


@pytest.mark.parametrize(
    ("path", "to", "says"),
    [
        ((*OF, "rule", "weights"), {"a": 0, "b": 0}, "rule.weights are all 0"),
        ((*OF, "rule", "weights"), {"a": 1}, "rule.weights are not of the detectors in its standings"),
        ((*OF, "rule", "standings", "a", "above"), [0.5], "standings.a has lists of several lengths"),
        ((*OF, "rule", "standings", "a", "above"), [0.9, 0.5, 1.1], r"above.2 has an impossible value: 1.1"),
        (
            (*OF, "rule"),
            {**CASCADE, "filter": {**FIRST, "weights": {"a": 0}}},
            "rule.filter.weights are all",
        ),
        ((*OF, "rule"), {**CASCADE, "filter": VOTE}, "rule.filter"),
        ((*OF, "rule"), {**FIXED, "k": 3}, "rule.k is 3, of 2 detectors"),
        ((*OF, "rule"), {"form": "vote", "k": 1}, "ensembles.g.rule.standings is missing"),
        ((*OF, "rule"), {}, "ensembles.g.rule.form is missing"),
        ((*OF, "members"), ["a"], "members are not the detectors that its rule reads"),
        ((*OF, "cuts", "signal"), 3, "cuts.page is 2.0, below its signal"),
        ((*OF, "metrics", "positives"), 301, "ensembles.g.metrics.positives is 301"),
        ((*OF, "metrics", "recall", "low"), 0.7, "ensembles.g.metrics.recall.low is 0.7, above its high"),
        ((*OF, "budget"), 0, "budget has an impossible value: 0"),
        (("ensembles", "bad\nname"), {}, "ensembles"),
        (("detectors", "b", "flag_when"), "above", "reads b as flagging below"),
        (("data", "samples"), {"w": {**dataclasses.asdict(DESIGN), "strata": {"s": [1, 2]}}}, "drew more traces than"),
    ],
)
def test_what_cannot_be_is_refused(path: tuple[str, ...], to: Any, says: str) -> None:
    with pytest.raises(BadThresholds, match=says):
        from_json(changed(to_json(GOOD), *path, to=to))
    from_json(to_json(GOOD))


def test_diff_tells_what_becomes_of_an_ensemble() -> None:
    none = release(PAIR)
    assert [str(change) for change in diff(none, GOOD)] == [
        "ensemble g added (weighted of a, b; signal at ≥ 1, page at ≥ 2)"
    ]
    assert [str(change) for change in diff(GOOD, none)] == [
        "ensemble g removed (weighted of a, b; signal at ≥ 1, page at ≥ 2)"
    ]
    was = GOOD.ensembles["g"]
    moved = dataclasses.replace(
        was,
        rule={**MEAN, "weights": {"a": 1, "b": 3}},
        cuts=Cuts(None, 1.25),
        metrics=dataclasses.replace(METRICS, recall=METRICS.precision),
        budget=0.1,
    )
    assert [str(change) for change in diff(GOOD, release(PAIR, ensembles={"g": moved}))] == [
        "ensemble g: rule changed from weighted to weighted, made anew",
        "ensemble g: signal cut moved from 1 to 1.25",
        "ensemble g: page cut changed from 2.0 to none",
        "ensemble g: budget moved from 5.0% to 10.0%",
        "ensemble g: recall moved from 50.0% (40.0% to 60.0%) to 80.0% (70.0% to 90.0%)",
    ]
    one = EnsembleEntry({**VOTE, "standings": {"a": A}}, ("a",), was.cuts, METRICS, 0.05)
    assert [str(change) for change in diff(GOOD, release(PAIR, ensembles={"g": one}))] == [
        "ensemble g: rule changed from weighted to vote",
        "ensemble g: members changed from a, b to a",
    ]


def test_diff_tells_sampling_and_designs() -> None:
    old, new = release({"d": entry()}), release({"d": entry(sampling=Sampling(0.01, {"stakes": "high"}))})
    assert [str(change) for change in diff(old, new)] == [
        "d: sampling changed from 100% of all traces to 1% of stakes=high"
    ]
    drawn = release({"d": entry()}, data=dataclasses.replace(old.data, samples={"W46": DESIGN}))
    assert [str(change) for change in diff(old, drawn)] == [
        "data.samples changed from none to W46 (stratified, 300 of 12,000)"
    ]


def test_verify_names_the_ensembles(tmp_path: Any) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(encode(GOOD))
    assert verify(path).ensembles == ("g",)
