"""Drift through the store: what moved is said of its detector and model, and what cannot be known is not."""

from __future__ import annotations

import json
from datetime import timedelta

import numpy as np
import pytest
from scipy.stats import energy_distance, fisher_exact

from calibrate import workspace
from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.watching import drift as sentences
from calibrate.stats.monitoring.drift import Window
from calibrate.types import ExternalDetector, TraceFilter
from calibrate.workflow.sampling import sample
from calibrate.workflow.watching import drift, drift_report, recheck
from db import Store, open_store
from tests.workflow.aftermath import RELEASED, THRESHOLD, add, released, scores_of
from tests.workflow.making import ABOVE, NOW, give_scores

LATER = RELEASED + timedelta(hours=1)


@pytest.fixture
def lite(sqlite_url: str) -> Store:
    return open_store(sqlite_url)


def test_a_quiet_week_holds_and_says_what_it_would_have_seen(store: Store) -> None:
    released(store)
    add(store, "new", scores_of(300, seed=2), start=LATER)
    report = drift.drift(store, now=NOW)
    (line,) = report.lines
    assert (line.detector, line.model, line.state, line.unseen) == (ABOVE, "m1", "holds", False)
    assert line.shift is not None
    assert (line.shift.before.traces, line.shift.now.traces) == (600, 300)
    assert "would have been seen" in sentences.line_verdict(line)
    assert "holds as far as scores tell" in sentences.line_verdict(line)
    assert sentences.verdict(report).startswith("Release v1 holds as far as scores tell (300 traces")
    assert sentences.next_step(report) == "nothing to do"
    assert line.shift == drift.drift(store, now=NOW).lines[0].shift  # the same seed, the same answer


def test_no_trace_is_in_both_windows(lite: Store) -> None:
    released(lite)
    began = RELEASED - timedelta(days=14)
    since = began + timedelta(minutes=400)  # before the release: 200 of its 600 traces are looked at as new
    (line,) = drift.drift(lite, since=since, now=NOW).lines
    assert line.shift is not None
    assert (line.shift.before.traces, line.shift.now.traces) == (400, 200)


def test_models_with_little_traffic_are_left_out_and_that_is_said(lite: Store) -> None:
    released(lite)
    add(lite, "new", scores_of(300, seed=2), start=LATER)
    add(lite, "odd", scores_of(2, seed=3), start=LATER, model="m9")
    report = drift.drift(lite, now=NOW)
    assert [line.model for line in report.lines] == ["m1"]
    assert "1 model with little traffic left out." in sentences.verdict(report)


def test_scores_that_moved_are_said_with_figures_that_others_compute_too(store: Store) -> None:
    released(store)
    old, new = scores_of(600), scores_of(300, away=0.6, seed=2)
    add(store, "new", new, start=LATER)
    report = drift.drift(store, now=NOW)
    (line,) = report.lines
    x, y = (np.array([score for score in some if score is not None]) for some in (old, new))
    assert line.state == "moved"
    assert line.shift is not None
    assert line.moved is not None
    assert line.moved.scores
    assert line.shift.before.median == pytest.approx(float(np.median(x)))
    assert line.shift.difference == pytest.approx(float(np.median(y) - np.median(x)))
    apart = float(np.abs(x[:, None] - y).mean())
    assert line.shift.size == pytest.approx(energy_distance(x, y) ** 2 / (2 * apart))
    table = [
        [int((side >= THRESHOLD).sum()), len(all_) - int((side >= THRESHOLD).sum())]
        for side, all_ in ((x, old), (y, new))
    ]
    assert line.shift.p_flags == pytest.approx(fisher_exact(table).pvalue)
    assert "scores moved: Citation validity is higher by" in sentences.line_verdict(line)
    assert sentences.line_verdict(line).endswith("the threshold is not known to hold")
    assert sentences.verdict(report) == "Scores moved (Citation validity); thresholds are not known to hold."
    assert sentences.next_step(report).endswith(f"`recheck {ABOVE} --target 0.7`, or whatever precision is to hold")
    assert line.bins is not None
    assert line.bins.before.sum() == pytest.approx(1)
    assert line.bins.now.sum() == pytest.approx(1)


def test_an_unseen_model_asks_to_recalibrate_whatever_its_scores_say(store: Store) -> None:
    released(store)
    add(store, "before", scores_of(200, away=4, seed=4), start=RELEASED - timedelta(days=1), model="m2")
    add(store, "new", scores_of(300, seed=2), start=LATER)
    add(store, "other", scores_of(200, seed=3), start=LATER, model="m2")
    report = drift.drift(store, now=NOW)
    states = {line.model: line.state for line in report.lines}
    assert states == {"m1": "holds", "m2": "recalibrate"}
    (unseen,) = report.moved
    assert unseen.compared_before == 600  # the traffic of m1: what the release was made on
    assert sentences.verdict(report).startswith("Release v1 was made without m2")
    assert sentences.next_step(report).endswith(
        f"`recheck {ABOVE} --model m2 --target 0.7`, or whatever precision is to hold"
    )


def test_traffic_without_scores_is_not_said_to_hold(store: Store) -> None:
    released(store)
    add(store, "new", scores_of(100, seed=2), start=LATER, detector=None)
    report = drift.drift(store, now=NOW)
    assert [line.state for line in report.lines] == ["not scored"]
    assert f"not scored since the release: run `detect {ABOVE} --all`" in sentences.line_verdict(report.lines[0])
    assert sentences.next_step(report) == f"score the traffic: `detect {ABOVE} --all`"
    assert "holds as far" not in sentences.line_verdict(report.lines[0])
    # Nothing runs a detector whose scores are imported.
    elsewhere = ExternalDetector(ABOVE, "above", None, None, None, "1", "ann", NOW)
    with workspace.using(workspace.Workspace(external={ABOVE: elsewhere})):
        command = f"`scores import FILE --detector {ABOVE}`"
        assert sentences.line_verdict(report.lines[0]).endswith(f"run {command}")
        assert sentences.next_step(report) == f"score the traffic: {command}"
        with pytest.raises(BadInput, match=f"score the traffic first .{command}"):
            recheck.begin(store, ABOVE, target=0.7, since=None, by="ann", now=NOW)


def test_scores_of_chosen_traces_stand_for_nothing_those_of_a_random_sample_do(lite: Store) -> None:
    released(lite)
    traces = add(lite, "new", scores_of(300, seed=2), start=LATER, detector=None)
    high = [(trace, 3.0) for trace in traces[:40]]
    give_scores(lite, [trace for trace, _ in high], [score for _, score in high], name=ABOVE)
    (line,) = drift.drift(lite, now=NOW).lines
    assert line.state == "partly scored"
    assert "only 40 of 300 traces since the release were scored" in sentences.line_verdict(line)
    where = TraceFilter(since=RELEASED, undated=False)
    drawn = sample.draw(lite, "r", size=60, design="random", where=where, seed=3, now=NOW)
    members = lite.traces.load([member.trace_pk for member in lite.samples.members(drawn.id)])
    give_scores(lite, members, scores_of(60, seed=5), name=ABOVE)
    (line,) = drift.drift(lite, now=NOW).lines
    assert (line.state, line.compared) == ("holds", 60)


def test_few_scores_and_no_traffic_are_said(lite: Store) -> None:
    with pytest.raises(BadInput, match="nothing was released yet"):
        drift.drift(lite, now=NOW)
    released(lite)
    report = drift.drift(lite, now=NOW)
    assert (report.lines, report.traces) == ((), 0)
    assert "nothing to compare" in sentences.verdict(report)
    add(lite, "new", scores_of(12, seed=2), start=LATER)
    (line,) = drift.drift(lite, now=NOW).lines
    assert line.state == "too few"
    later = drift.drift(lite, since=NOW + timedelta(days=1), now=NOW)
    assert sentences.verdict(later) == "No dated traces since 2026-11-21 12:00 UTC: nothing to compare yet."
    for call in (["--since", "all"], ["--seed", "-1"]):
        assert main(["drift", "--store", lite.url, *call]) == 2
    with pytest.raises(BadInput, match="no release 7"):
        drift.drift(lite, version=7, now=NOW)
    with pytest.raises(BadInput, match="nli is not in release 1"):
        drift.drift(lite, detectors=["nli"], now=NOW)


def test_a_window_is_drawn_by_chance_and_by_seed(store: Store) -> None:
    traces = add(store, "new", scores_of(500, seed=2), start=LATER, group=5)
    config = give_scores(store, traces[:1], [1.0])
    where = TraceFilter(since=RELEASED)
    rngs = [np.random.default_rng(seed) for seed in (1, 1, 2)]
    config = store.scores.config(ABOVE, "1", {"variant": "default"}, "", now=NOW)
    one, same, other = (store.coverage.draw(config.id, where, 100, rng=rng) for rng in rngs)
    assert len(one.scores) == 100
    assert np.array_equal(one.scores, same.scores, equal_nan=True)
    assert set(one.scores) != set(other.scores)
    everything = store.coverage.draw(config.id, where, 5000, rng=rngs[0])
    assert len(everything.scores) == 500
    assert len(set(everything.groups)) == 100
    # Traces early and late in the window are drawn alike: the hash knows nothing of time.
    late = {f"group new {place}" for place in range(50, 100)}
    share = np.mean(
        [
            sum(group in late for group in store.coverage.draw(config.id, where, 100, rng=rngs[2]).groups)
            for _ in range(20)
        ]
    )
    assert 40 < share < 60


def test_an_old_or_missing_entropy_baseline_is_stale() -> None:
    from types import SimpleNamespace

    from calibrate.types import Baseline

    def store_with(*known: Baseline) -> Store:
        current = {(one.statistic, one.model): one for one in known}
        return SimpleNamespace(baselines=SimpleNamespace(current=lambda: current))  # type: ignore[return-value]

    entry = SimpleNamespace(params={"aggregate": "mean"})
    pair = drift._Pair("entropy_z", entry, "m", False)  # type: ignore[arg-type]
    fresh = Baseline("entropy/mean/top5", "m", 1.0, 0.1, 50, NOW - timedelta(days=10))
    old = Baseline("entropy/mean/top5", "m", 1.0, 0.1, 50, NOW - timedelta(days=100))
    other = Baseline("entropy/max/top5", "m", 1.0, 0.1, 50, NOW)
    assert drift._stale(store_with(fresh), pair, NOW) is None
    assert drift._stale(store_with(old), pair, NOW) == drift_report.StaleBaseline(drift_report.Stale.OLD, 100)
    assert drift._stale(store_with(other), pair, NOW) == drift_report.StaleBaseline(drift_report.Stale.MISSING)


def test_prevalence_is_unknown_where_a_window_has_no_score_to_map() -> None:
    from types import SimpleNamespace

    from calibrate.probability import ProbabilityMap

    entry = SimpleNamespace(probability_map=SimpleNamespace(map=ProbabilityMap(0.0, 1.0, (0.0, 1.0, 0.0), "above")))
    scored, unscored = Window(np.array([-1.0, 1.0, 2.0])), Window(np.full(3, np.nan))
    for before, now in ((scored, unscored), (unscored, scored)):
        assert drift._prevalence(entry, SimpleNamespace(before=before, now=now)) is None  # type: ignore[arg-type]
    same = drift._prevalence(entry, SimpleNamespace(before=scored, now=scored))  # type: ignore[arg-type]
    assert same is not None
    assert same[0] == pytest.approx(np.mean(1 / (1 + np.exp(-scored.scores))))
    assert same[1] == pytest.approx(same[0], abs=0.02)
    bare = SimpleNamespace(probability_map=None)
    assert drift._prevalence(bare, SimpleNamespace(before=scored, now=scored)) is None  # type: ignore[arg-type]


def test_the_verb_prints_the_report_and_its_json(lite: Store, capsys: pytest.CaptureFixture[str]) -> None:
    released(lite)
    add(lite, "new", scores_of(300, away=0.8, seed=2), start=LATER)
    assert main(["drift", "--store", lite.url]) == 0
    text = capsys.readouterr().out
    assert "Scores moved (Citation validity)" in text
    assert "next: " in text
    assert main(["drift", "--store", lite.url, "--json", "--since", "2026-11-13"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lines"][0]["moved"]["scores"] is True
    assert found["now"]["since"].startswith("2026-11-13")
    assert main(["drift", "--store", lite.url, "--release", "9"]) == 2
