"""Agreement over a store: figures per pair, adjudication, traces to label twice, second look, error rates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.stats.labels.agreement import ENRICHED
from calibrate.stats.labels.sensitivity import Errors
from calibrate.types import Label
from calibrate.workflow.evidence import loading
from calibrate.workflow.labelling import agreement as step
from db import Store
from tests.workflow.making import ABOVE, DETECTOR, NOW, draw, fill, give_scores, keep_sample, save


def say(store: Store, trace: int, who: str, verdict: str) -> None:
    pk = store.traces.find(f"t{trace}")
    assert pk is not None
    store.labels.add(pk, Label("", who, verdict), sample_id=None, now=NOW)  # type: ignore[arg-type]


def key(store: Store, trace: int) -> int:
    return store.traces.find(f"t{trace}") or 0


@pytest.fixture
def filled(store: Store) -> list[bool]:
    """60 traces labelled by gold and scored by two detectors."""
    labels, scores = draw()
    fill(store, labels, scores)
    traces = store.traces.load([key(store, place) for place in range(60)])
    give_scores(store, traces, [None if one is None else 1 - one for one in scores], name=ABOVE)
    return labels


def test_one_labeller_agrees_with_nobody(store: Store, filled: list[bool]) -> None:
    seen = step.look(store)
    assert (seen.overall, seen.pairs, seen.disputed, dict(seen.labellers)) == (None, (), (), {})


def test_pairs_disputes_and_unsure(store: Store, filled: list[bool]) -> None:
    for place in range(20):
        same = filled[place] if place > 2 else not filled[place]
        say(store, place, "ann", "hallucinated" if same else "clean")
    say(store, 20, "ann", "unsure")
    say(store, 21, "bob", "clean")
    seen = step.look(store)
    assert dict(seen.labellers) == {"ann": 21, "bob": 1, "gold": 22}
    first, second = seen.pairs
    assert (first.labellers, first.traces, first.differ, first.unsure) == (("ann", "gold"), 20, 3, 1)
    assert first.raw.value == pytest.approx(17 / 20)
    assert (second.labellers, second.traces) == (("bob", "gold"), 1)
    assert [one.trace_id for one in seen.disputed][:3] == ["t0", "t1", "t2"]
    assert step.look(store) == seen  # the same labels, the same intervals


def test_a_sample_sees_its_members_only(store: Store, filled: list[bool]) -> None:
    keep_sample(store, ["a", "a", "b"], {"a": 10, "b": 20})
    for place in (1, 5):
        say(store, place, "ann", "hallucinated" if filled[place] else "clean")
    assert step.look(store, "w47").pairs[0].traces == 1
    with pytest.raises(BadInput, match="no sample"):
        step.look(store, "w48")


def test_adjudication_decides_and_is_written_once(store: Store, filled: list[bool]) -> None:
    say(store, 0, "ann", "clean" if filled[0] else "hallucinated")
    pk = key(store, 0)
    before = len(loading.load_evidence(store, DETECTOR).rows)
    assert step.adjudicate(store, pk, "hallucinated", by="cy", now=NOW, note="clear")
    assert not step.adjudicate(store, pk, "hallucinated", by="cy", now=NOW, note="clear")
    assert len(store.labels.of_trace(pk)) == 3
    assert len(loading.load_evidence(store, DETECTOR).rows) == before + 1
    seen = step.look(store)
    assert (seen.disputed, seen.adjudicated) == ((), 1)
    assert seen.pairs[0].differ == 1  # an adjudication is no labeller's verdict: they still differed
    assert "cy" not in seen.labellers
    assert step.adjudicate(store, pk, "clean", by="dee", now=NOW)
    assert step.adjudicate(store, pk, "hallucinated", by="cy", now=NOW, note="clear")
    assert store.labels.readings()[0].gold == "hallucinated"


def test_what_cannot_be_adjudicated_is_said(store: Store) -> None:
    fill(store, [None], [None])
    with pytest.raises(BadInput, match="nobody has labelled"):
        step.adjudicate(store, key(store, 0), "clean", by="cy", now=NOW)
    with pytest.raises(BadInput, match="a verdict is one of"):
        step.adjudicate(store, key(store, 0), "perhaps", by="cy", now=NOW)  # type: ignore[arg-type]


@pytest.mark.both_databases
def test_a_set_to_label_twice_is_enriched_and_never_estimates(store: Store, filled: list[bool]) -> None:
    say(store, 0, "ann", "clean")
    drawn = step.double(store, None, size=30, seed=1, now=NOW)
    positives, negatives = sum(filled[1:]), 59 - sum(filled[1:])
    assert (drawn.design, drawn.size, drawn.name) == (ENRICHED, 30, "2026-W47-double")
    assert dict(drawn.strata) == {"hallucinated": (positives, 12), "clean": (negatives, 18)}
    members = store.samples.members(drawn.id)
    assert key(store, 0) not in {one.trace_pk for one in members}
    assert {one.stratum: one.inclusion_probability for one in members} == {
        "hallucinated": pytest.approx(12 / positives),
        "clean": pytest.approx(18 / negatives),
    }
    again = step.double(store, None, size=30, seed=1, name="again", now=NOW)
    assert store.samples.members(again.id) == members
    with pytest.raises(BadInput, match="enriched"):
        assert loading.load_evidence(store, DETECTOR, sample=drawn.name).sweep
    with pytest.raises(BadInput, match="there is a sample"):
        step.double(store, None, size=30, seed=1, now=NOW)


def test_few_hallucinated_labels_are_all_taken(store: Store, filled: list[bool]) -> None:
    drawn = step.double(store, None, size=1000, seed=1, now=NOW)
    assert drawn.size == 60
    with pytest.raises(BadInput, match="at least 2"):
        step.double(store, None, size=1, now=NOW)


def test_there_may_be_nothing_to_label_twice(store: Store) -> None:
    fill(store, [None], [None])
    with pytest.raises(BadInput, match="nothing to label twice"):
        step.double(store, None, now=NOW)


def test_a_second_look_finds_what_was_mislabelled_and_forgets_what_was_adjudicated(store: Store) -> None:
    labels, _ = draw(200, seed=3)
    scores = [0.2 if bad else 0.8 for bad in labels]
    noisy = (np.array(scores) + np.random.default_rng(1).normal(0, 0.08, 200)).tolist()
    labels[3] = not labels[3]
    fill(store, labels, noisy)
    found = step.second_look(store, limit=5)
    assert (found.n, found.positives, len(found.suspects)) == (200, sum(labels), 5)
    assert found.suspects[0].row.trace_id == "t3"
    assert found.auroc > 0.95
    assert found.suspects[0].doubt.reasons[0].detector == DETECTOR
    assert step.second_look(store, limit=5) == found
    read = step.read_doubts(store, found)
    assert {doubt.trace.id for doubt in read} == {one.row.trace_id for one in found.suspects if one.doubt.reasons}
    assert (read[0].trace.id, read[0].detector) == ("t3", DETECTOR)
    step.adjudicate(store, key(store, 3), "clean" if labels[3] else "hallucinated", by="cy", now=NOW)
    assert "t3" not in {one.row.trace_id for one in step.second_look(store, limit=5).suspects}


def test_a_second_look_without_scores_says_what_to_do(store: Store) -> None:
    with pytest.raises(BadInput, match="run them first"):
        step.second_look(store)


@pytest.mark.both_databases
def test_error_rates_count_the_draw_of_an_enriched_set(store: Store) -> None:
    """ann misses a quarter of the hallucinated; cy settles the disputes. The draw takes all she called hallucinated."""
    truth = np.arange(240) < 80
    said = truth & (np.arange(240) >= 20)
    fill(store, said.tolist(), [0.5] * 240)
    drawn = step.double(store, None, size=150, seed=2, now=NOW)
    members = store.samples.members(drawn.id)
    assert drawn.strata["hallucinated"] == (60, 60)
    for one in members:
        place = one.trace_pk - key(store, 0)
        say(store, place, "bob", "hallucinated" if truth[place] else "clean")
        if said[place] != truth[place]:
            step.adjudicate(store, one.trace_pk, "hallucinated", by="cy", now=NOW)
    bob, gold = step.errors(store, step.look(store, drawn.name))
    assert (bob.labeller, bob.errors) == ("bob", Errors(0.0, 0.0))
    assert gold.errors is not None
    missed = gold.hallucinated - 60
    weighted = 2 * missed / (60 + 2 * missed)  # half of the 180 called clean were drawn
    assert gold.errors.misses == pytest.approx(weighted)
    assert gold.errors.misses > missed / gold.hallucinated
    assert gold.errors.false_calls == 0


def test_without_errors_the_figures_of_a_point_are_its_own(store: Store, filled: list[bool]) -> None:
    point = save(store, "elbow")
    saved = store.points.latest()[DETECTOR]
    for each in (point, saved.point):
        found = step.if_labellers_err(each, Errors(0, 0))
        assert found.precision.value == pytest.approx(point.precision.value)
        assert found.recall.value == pytest.approx(point.recall.value)
        assert found.prevalence.value == pytest.approx(sum(filled) / 60)
    worse = step.if_labellers_err(point, Errors(0, 0.05))
    assert (worse.precision.value or 0) < (point.precision.value or 0)


def test_the_command_line(store: Store, filled: list[bool], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def call(*args: str) -> tuple[int, dict]:
        code = main(["agreement", *args, "--json", "--store", store.url])
        return code, json.loads(capsys.readouterr().out)

    code, none_yet = call()
    assert (code, none_yet["overall"], none_yet["pairs"]) == (0, None, [])
    for place in range(12):
        say(store, place, "ann", "clean")
    code, shown = call()
    assert code == 0
    assert shown["pairs"][0]["labellers"] == ["ann", "gold"]
    assert set(shown["pairs"][0]["alpha"]) == {"value", "low", "high"}
    disputed = [one["trace_id"] for one in shown["disputed"]]
    assert disputed == [f"t{place}" for place in range(12) if filled[place]]
    code, done = call("adjudicate", disputed[0], "--verdict", "hallucinated", "--note", "plain")
    assert (code, done["gold"], done["written"]) == (0, "hallucinated", True)
    assert call("adjudicate", disputed[0], "--verdict", "hallucinated", "--note", "plain")[1]["written"] is False
    assert len(call()[1]["disputed"]) == len(disputed) - 1
    code, suspects = call("second-look", "--limit", "3")
    assert (code, len(suspects["suspects"])) == (0, 3)
    code, drawn = call("double", "--size", "10", "--seed", "3", "--name", "twice")
    assert (code, drawn["size"], drawn["strata"]["hallucinated"]) == (0, 10, 4)
    for wrong in (["adjudicate"], ["adjudicate", "t1"], ["adjudicate", "t99", "--verdict", "clean"], ["show", "t1"]):
        assert call(*wrong)[0] == 2
    assert call("second-look", "--limit", "0")[0] == 2
    assert main(["agreement", "--store", store.url]) == 0
    text = capsys.readouterr().out
    assert "ann and gold agree on" in text
    assert "α and AC1" in text
