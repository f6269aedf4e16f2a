"""The checklist of a threshold: every item from facts made by hand, and from a store."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from scipy.stats import beta

from calibrate.cli import main
from calibrate.errors import BadInput, UnknownDetector
from calibrate.report.sentences.releasing import checklist as sentences
from calibrate.types import Label, PointState, PointVerdict, Record, Source, StateReason, Trace
from calibrate.workflow.releasing import release as step
from calibrate.workflow.releasing.checklist import ENOUGH, FRESH, Facts, Item, Mark, checklist, checklists, decide
from db import Store
from db.releases import ReleaseRequest
from tests.workflow.making import DETECTOR, NOW, draw, fill, save

FINE = Facts(
    labels=300, flagged=60, hits=45, disputed=0, coverage=0.98, newest=NOW - timedelta(days=3), models=(),
    changed=False, is_open=False, state=PointState(PointVerdict.HOLDS, target=0.7, flagged=60, hits=45),
)  # fmt: skip
BAD = PointVerdict.DO_NOT_RELEASE


def marks(**changes: Any) -> dict[Item, Mark]:
    return decide(replace(FINE, **changes), NOW)


def test_all_is_well_where_nothing_is_open() -> None:
    assert set(marks().values()) == {Mark.PASSED}


@pytest.mark.parametrize(
    ("changes", "item", "mark"),
    [
        ({"flagged": ENOUGH}, Item.EVIDENCE, Mark.PASSED),
        ({"flagged": ENOUGH - 1}, Item.EVIDENCE, Mark.CAUTION),
        ({"flagged": 3, "state": PointState(BAD, StateReason.FEW_FLAGGED)}, Item.EVIDENCE, Mark.FAILED),
        ({"state": PointState(BAD, StateReason.NOT_OF_TRAFFIC)}, Item.EVIDENCE, Mark.FAILED),
        ({"disputed": 1}, Item.DISPUTES, Mark.CAUTION),
        ({"disputed": 9, "state": PointState(BAD, StateReason.DISPUTED)}, Item.DISPUTES, Mark.FAILED),
        ({"coverage": 0.9}, Item.COVERAGE, Mark.PASSED),
        ({"coverage": 0.89}, Item.COVERAGE, Mark.CAUTION),
        ({"newest": NOW - FRESH}, Item.FRESH, Mark.PASSED),
        ({"newest": NOW - FRESH - timedelta(seconds=1)}, Item.FRESH, Mark.CAUTION),
        ({"newest": None}, Item.FRESH, Mark.CAUTION),
        ({"models": ("new",)}, Item.FRESH, Mark.CAUTION),
        ({"changed": True}, Item.FRESH, Mark.CAUTION),
        ({"state": PointState(PointVerdict.NOT_SHOWN, StateReason.UNPROVEN)}, Item.PROMISE, Mark.CAUTION),
        ({"state": PointState(BAD, StateReason.MOSTLY_BELOW)}, Item.PROMISE, Mark.FAILED),
        ({"is_open": True}, Item.PROMISE, Mark.FAILED),
    ],
)
def test_each_item_is_marked_by_its_own_facts(changes: dict[str, Any], item: Item, mark: Mark) -> None:
    others = {each: each_mark for each, each_mark in marks(**changes).items() if each != item}
    assert marks(**changes)[item] == mark
    if mark == Mark.CAUTION:
        assert set(others.values()) == {Mark.PASSED}


@pytest.mark.parametrize("why", list(StateReason))
def test_what_takes_a_reason_is_what_fails(why: StateReason) -> None:
    """A cross stands exactly where a release asks a reason: nobody has to learn two kinds of "no"."""
    for verdict in PointVerdict:
        state = PointState(verdict, why)
        assert (Mark.FAILED in marks(state=state).values()) == state.known_bad


def test_enough_flagged_labels_bound_a_precision_to_38_points() -> None:
    """Clopper and Pearson's interval at its widest, from SciPy."""
    widths = [
        (beta.ppf(0.975, hits + 1, ENOUGH - hits) if hits < ENOUGH else 1.0)
        - (beta.ppf(0.025, hits, ENOUGH - hits + 1) if hits else 0.0)
        for hits in range(ENOUGH + 1)
    ]
    assert 0.36 < max(widths) < 0.38


def test_a_saved_threshold_is_looked_at_as_it_stands_now(store: Store) -> None:
    labels, scores = draw(120)
    fill(store, labels, scores)
    point = save(store, "manual:0.55")
    row = checklist(store, store.points.latest()[DETECTOR], now=NOW)
    flagged = [bad for bad, score in zip(labels, scores, strict=True) if score is not None and score <= 0.55]
    assert (row.facts.flagged, row.facts.hits, row.facts.labels) == (len(flagged), sum(flagged), 120)
    assert row.facts.coverage == pytest.approx(point.coverage)
    assert not row.blocks
    words = f"{sum(flagged)} of {len(flagged)} flagged labels hallucinated, 120 labels in all."
    assert sentences.words(row, Item.EVIDENCE, NOW) == words
    # Ada disagrees about one; a model that no label is of answers now; and a month and a day go by.
    key = store.traces.find("t0")
    assert key is not None
    verdict = "clean" if labels[0] else "hallucinated"
    store.labels.add(key, Label("", "ada", verdict), sample_id=None, now=NOW)  # type: ignore[arg-type]
    later = NOW + timedelta(days=40)
    fresh = Trace("new", answer="An answer.", sources=(Source("1", "Text."),), timestamp=later, model="c")
    store.traces.add([Record(1, fresh, ())], labels_as=None, now=later)
    row = checklist(store, store.points.latest()[DETECTOR], now=later)
    assert row.facts.disputed == 1
    assert row.facts.models == ("c",)
    assert row.marks[Item.DISPUTES] == row.marks[Item.FRESH] == Mark.CAUTION
    assert "over 31 days" in sentences.words(row, Item.FRESH, later)
    assert "no label yet of c" in sentences.words(row, Item.FRESH, later)


def test_a_reason_that_was_given_is_said_and_no_longer_blocks(store: Store) -> None:
    labels, scores = draw(120)
    fill(store, labels, scores)
    lowest = sorted(score for score in scores if score is not None)[1]
    save(store, f"manual:{lowest}", reason="a pilot of <one> week")
    saved = store.points.latest()[DETECTOR]
    row = checklist(store, saved, now=NOW)
    assert (row.worst, row.blocks) == (Mark.FAILED, False)
    assert sentences.words(row, Item.PROMISE, NOW).endswith("Saved because: a pilot of <one> week.")
    row = checklist(store, replace(saved, data=replace(saved.data, reason="")), now=NOW)
    assert (row.worst, row.blocks) == (Mark.FAILED, True)
    assert sentences.headline(row) == "takes a reason"


def test_the_command_says_it_and_releases_nothing(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    labels, scores = draw(120)
    fill(store, labels, scores)
    save(store, "manual:0.55")
    step.release(store, ReleaseRequest(by="ann"), now=NOW)
    save(store, "manual:0.5")
    (row,) = checklists(store, now=NOW)
    assert main(["release", "--check", "--json", "--store", store.url]) == 0
    document = json.loads(capsys.readouterr().out)
    items = document["thresholds"][0]["items"]
    assert set(items) == {str(item) for item in Item}
    assert items["promise"]["mark"] == str(row.marks[Item.PROMISE])
    assert document["sentence"].startswith("v2 ")
    assert store.releases.count() == 1
    assert main(["release", "--check", "--out", "f.json", "--store", store.url]) == 2
    with pytest.raises(BadInput, match="has no saved operating point"):
        checklists(store, now=NOW, detectors=["rouge_l"])
    with pytest.raises(UnknownDetector):
        checklists(store, now=NOW, detectors=["rouge"])


def test_the_command_fails_where_a_release_would(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """One score for all: no threshold is right nine times of ten."""
    labels, _ = draw(120)
    fill(store, labels, [0.5] * 120)
    save(store, "precision>=0.9")
    assert main(["release", "--check", "--store", store.url]) == 1
    assert "token_overlap: cannot be released" in capsys.readouterr().out
