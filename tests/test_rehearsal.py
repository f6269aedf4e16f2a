"""An upgrade as a team lives it, on real labelled answers: calibrated on three models, then three others take over.

What the drift report says, what a recheck decides and what a recalibration releases are held against the labels of the
data set itself, and the way back against the decisions on every score.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp

from calibrate.report.sentences.watching import drift as sentences
from calibrate.runtime import decide, load
from calibrate.stats.choosing.choose import choose
from calibrate.stats.choosing.policy import parse
from calibrate.stats.sweep.sweep import sweep
from calibrate.types import Label, Record, Trace, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import history, release, unknown_models
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.upgrade import planning, recalibrate
from calibrate.workflow.watching import drift, recheck
from calibrate.workflow.week import week
from db import Store, open_store
from db.releases import ReleaseRequest
from tests import shared_data

pytestmark = pytest.mark.shared

BEFORE = ("llama-2-7b-chat", "llama-2-13b-chat", "llama-2-70b-chat")
AFTER = ("gpt-4-0613", "gpt-3.5-turbo-0613", "mistral-7B-instruct")
NAMES = ("rouge_l", "token_overlap")
RECHECKED = "token_overlap"  # flags enough answers of the new models to decide on
MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
UPGRADE = MONDAY + timedelta(days=7)
TARGET = 0.7


@dataclass(frozen=True)
class Rehearsal:
    store: Store
    truth: dict[str, str]  # what the data set says, by trace

    def scores(self, name: str, models: Sequence[str]) -> np.ndarray:
        """By the store, not by the steps under test."""
        config = self.store.scores.configs(name)[-1]
        rows = self.store.scores.window(config.id, TraceFilter(models=tuple(models)))
        return rows[~np.isnan(rows)]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """v1 on the first three models; then the others answer, scored and unlabelled."""
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('rehearsal') / 'store.db'}")
    data = shared_data.load("ragtruth_qa").scorable()
    pairs = [(trace, str(label)) for trace, label in zip(data.traces, data.labels, strict=True)]
    add(store, [pair for pair in pairs if pair[0].model in BEFORE], MONDAY, labelled=True)
    score(store)
    for name in NAMES:
        points = loading.load_evidence(store, name)
        operating_points.save_point(
            store, points, operating_points.choose_point(points, parse("f1")), by="ann", now=UPGRADE
        )
    release.release(store, ReleaseRequest(note="three models", by="ann"), now=UPGRADE)
    add(store, [pair for pair in pairs if pair[0].model in AFTER], UPGRADE, labelled=False)
    score(store)
    yield Rehearsal(store, {trace.id: label for trace, label in pairs})
    store.close()


def add(store: Store, pairs: Sequence[tuple[Trace, str]], start: datetime, *, labelled: bool) -> None:
    records = []
    for place, (trace, verdict) in enumerate(pairs):
        dated = replace(trace, timestamp=start + timedelta(minutes=20 * place + 1))
        label = (Label(trace.id, "", verdict),) if labelled else ()  # type: ignore[arg-type]
        records.append(Record(place + 1, dated, label))
    store.traces.add(records, labels_as="gold", now=start)


def score(store: Store) -> None:
    detect.work(store, run_id=detect.queue(store, NAMES, {"all": True}).id)


def test_the_upgrade_is_rehearsed_from_drift_to_the_way_back(live: Rehearsal, tmp_path: Path) -> None:
    store, now = live.store, UPGRADE + timedelta(days=7)

    # Drift is said: the models are unseen, and scores moved where an independent test says so.
    report = drift.drift(store, now=now)
    assert {one.name for one in report.unknown} == set(AFTER)
    assert {line.state for line in report.lines} == {"recalibrate"}
    assert "label some of those answers, then recalibrate" in sentences.verdict(report)
    moved = {(line.detector, line.model): bool(line.moved and line.moved.scores) for line in report.lines}
    for name in NAMES:
        old = live.scores(name, BEFORE)
        for model in AFTER:
            p = ks_2samp(old, live.scores(name, [model])).pvalue
            if p < 1e-5 or p > 0.2:  # plain cases; between them two good tests may differ
                assert moved[name, model] == (p < 1e-5), (name, model, p)
    assert any(moved.values())

    # The old thresholds are marked unknown wherever the week is told.
    home = week.week(store, name="2026-W47", labeller="ann", now=now)
    assert {one.name for one in home.unknown_models} == set(AFTER)
    assert all("not known" in sentences.line_verdict(line) for line in report.lines)

    # A recheck decides, label by label; the data set stands in for the labeller.
    one = recheck.begin(store, RECHECKED, target=TARGET, labels=40, seed=3, by="ann", now=now)
    state = recheck.state(store, one, now=now)
    while not state.done and not state.exhausted:
        if not state.left:
            recheck.more(store, one, now=now)
        position = store.labels.place(one.sample_id, "ann").position
        assert position is not None
        pk = store.samples.at(one.sample_id, position)
        assert pk is not None
        stored = store.traces.get(pk)
        assert stored is not None
        verdict = live.truth[stored.trace.id]
        store.labels.add(pk, Label("", "ann", verdict), sample_id=one.sample_id, now=now)  # type: ignore[arg-type]
        state = recheck.state(store, one, now=now)
    flagged = (
        live.scores(RECHECKED, AFTER) <= history.read_release(store.releases.list()[0]).detectors[RECHECKED].threshold
    )
    assert 0 < flagged.mean() < 1
    assert state.decision == "fell below"  # the data set's own precision there is well below the target
    assert precision(live) < TARGET - 0.1

    # Everybody's answers are labelled by now: the same policies on all labels, and released.
    said = [Label(trace_id, "gold", verdict) for trace_id, verdict in live.truth.items()]  # type: ignore[arg-type]
    store.labels.add_many(said, now=now)
    plan = planning.plan(store)
    assert set(plan.new_models) == set(AFTER)
    found = recalibrate.look(store, plan, recalibrate.redo(store, plan), by="ann", now=now)
    worse = "measured on all six models" if found.impact and found.impact.worse else ""
    out = tmp_path / "thresholds.json"
    made = recalibrate.release(store, found, note="six models", reason=worse, by="ann", now=now, out=out)
    assert made.version == 2  # type: ignore[union-attr]
    second = load(out)
    assert set(second.data.models) == {*BEFORE, *AFTER}
    for name in NAMES:  # what the policy chooses on these labels, by a sweep of one's own
        rows = loading.load_evidence(store, name).rows
        values = [np.nan if row.value is None else row.value for row in rows]
        own = sweep([row.gold == "hallucinated" for row in rows], values, flag_when="below")
        assert second.detectors[name].threshold == choose(own, parse("f1")).threshold
    assert unknown_models.unknown_models(store, store.releases.list()[0]) == ()

    # The way back: v3 is v1 again, to the byte where it decides, and in every decision.
    back = release.rollback(store, 1, by="bob", now=now, out=out)
    first, third = (store.releases.get(version) for version in (1, 3))
    assert first is not None
    assert back == third
    assert decisive(first.document) == decisive(back.document)
    thresholds, again = history.read_release(first), load(out)
    both = {name: live.scores(name, [*BEFORE, *AFTER]) for name in NAMES}
    for values in zip(*both.values(), strict=True):
        given = {name: float(value) for name, value in zip(NAMES, values, strict=True)}
        before, after = decide(thresholds, given), decide(again, given)
        assert (after.version, before.version) == (3, 1)
        assert replace(after, version=1) == before


def decisive(document: str) -> str:
    """The document without what names the release itself."""
    kept = {key: value for key, value in json.loads(document).items() if key not in history.OF_ITS_OWN}
    return json.dumps(kept, sort_keys=True)


def precision(live: Rehearsal) -> float:
    """Of what v1 flags among the new models' answers, the share that the data set calls hallucinated."""
    file = history.read_release(live.store.releases.list()[-1])
    config = live.store.scores.configs(RECHECKED)[-1]
    hits = []
    for trace_id, verdict in live.truth.items():
        pk = live.store.traces.find(trace_id)
        assert pk is not None
        stored = live.store.traces.get(pk)
        assert stored is not None
        if stored.trace.model in AFTER:
            scores = {c.id: one for c, one in live.store.scores.of_trace(pk)}
            value = scores[config.id].value
            if value is not None and value <= file.detectors[RECHECKED].threshold:
                hits.append(verdict == "hallucinated")
    return float(np.mean(hits))
