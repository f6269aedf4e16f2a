"""The scoreboard through the store: scikit-learn's figures on the same scores, what scores took, exports, the map."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.tuning.scoreboard import sentences
from calibrate.report.tables.column import as_csv
from calibrate.report.tables.scoreboard import IN_FILES
from calibrate.sanitize import cell
from calibrate.stats.choosing.choose import NotEnoughLabels
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.sweep import sweep
from calibrate.thresholds import from_json
from calibrate.thresholds.model import to_json
from calibrate.types import Evidence, Interval, Label, Record, Score, Trace, TraceFilter, Usage
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing.candidate import build_candidate
from calibrate.workflow.tuning import operating_points, probability
from calibrate.workflow.tuning.model_identity import MODEL
from calibrate.workflow.tuning.scoreboard import LENGTH, scoreboard
from db import Store, open_store
from db.releases import ReleaseRequest
from tests.workflow.making import ABOVE, DETECTOR, NOW, draw, fill, give_scores, keep_sample, save

BASELINE, SILENT = "word_overlap", "schema"


def filled(store: Store, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """One detector that knows something, a baseline that knows nothing, one that could score nothing."""
    labels, scores = draw(n)
    fill(store, labels, scores)
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(n)])
    rng = np.random.default_rng(0)
    give_scores(store, traces, [float(one) for one in rng.random(n)], name=BASELINE)
    give_scores(store, traces, [None] * n, name=SILENT)
    return np.array(labels), np.array([np.nan if one is None else one for one in scores])


def test_areas_equal_scikit_learn_and_the_baselines_come_last(store: Store) -> None:
    labels, scores = filled(store)
    board = scoreboard(store)
    there = np.isfinite(scores)
    line = board.line(DETECTOR)
    assert line.auroc.value == pytest.approx(roc_auc_score(labels[there], -scores[there]), abs=1e-9)
    assert line.average_precision.value == pytest.approx(
        average_precision_score(labels[there], -scores[there]), abs=1e-9
    )
    assert (line.n, line.scored, line.positives) == (60, 54, int(labels.sum()))
    assert board.lines[0].name == DETECTOR == board.leader
    assert {one.name for one in board.lines[1:]} == {BASELINE, LENGTH, MODEL}
    assert board.silent == {SILENT: "abstained: no context"}
    lengths = np.array([float(len(f"answer {place}")) for place in range(60)])
    assert board.line(LENGTH).auroc.value == pytest.approx(roc_auc_score(labels, lengths), abs=1e-9)
    assert scoreboard(store) == board


def test_a_sample_weighs_the_areas(store: Store) -> None:
    labels, scores = filled(store)
    strata = ["small" if place < 20 else "large" for place in range(60)]
    keep_sample(store, strata, {"small": 40, "large": 4000})
    there = np.isfinite(scores)
    weights = np.where(np.array(strata) == "small", 2.0, 100.0)[there]
    line = scoreboard(store, sample="w47").line(DETECTOR)
    expected = roc_auc_score(labels[there], -scores[there], sample_weight=weights)
    assert line.auroc.value == pytest.approx(expected, abs=1e-9)
    with pytest.raises(BadInput, match="no sample 'w48'"):
        scoreboard(store, sample="w48")


def test_the_leader_is_told_from_chance_only_by_a_paired_interval(store: Store) -> None:
    filled(store)
    board = scoreboard(store)
    against = {one.other: one for one in board.against}
    assert set(against) == {BASELINE, LENGTH, MODEL}
    found = against[BASELINE].result
    assert against[BASELINE].beyond == (found.auroc.low is not None and found.auroc.low > 0)
    assert found.n == 54  # what both scored
    said = sentences(board)
    assert said[0].startswith("Token overlap leads with an AUROC of 0.9")
    assert "the baseline word overlap: +0." in said[1]
    assert "better beyond its interval" in said[1]


def test_the_highest_of_several_alike_is_not_said_to_be_the_best(
    store: Store, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, _ = filled(store)
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(60)])
    rng = np.random.default_rng(5)
    for name in ("bleu", "rouge_l", "bertscore"):  # as good as each other, and not as good as the leader
        give_scores(store, traces, [float(one) for one in rng.normal(0.5 - 0.15 * labels, 0.2)], name=name)
    board = scoreboard(store)
    assert board.leader == DETECTOR == board.ranked[0]
    assert set(board.ranked) == {DETECTOR, "bleu", "rouge_l", "bertscore"}
    assert set(board.may_be_best) < set(board.ranked)
    said = sentences(board)
    assert "; the highest of 4 is flattered" in said[0]
    if board.may_be_best:
        assert said[1].startswith("It is not shown to be the best: of the 3 others, ")
    else:
        assert said[1] == "It is shown to rank better than each of the 3 others."
    assert main(["scoreboard", "--json", "--store", store_url]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["may_be_best"] == list(board.may_be_best)
    assert {one["verdict"] for one in document["against"]} <= {"better", "worse", "alone", "same", "unknown"}


def test_a_label_it_was_not_run_on_is_no_lack_of_coverage(store: Store) -> None:
    labels, scores = draw(60)
    fill(store, labels, scores)
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(40)])
    give_scores(store, traces, [None if place < 10 else place / 40 for place in range(40)], name=ABOVE)
    board = scoreboard(store)
    line = board.line(ABOVE)
    assert (line.not_run, line.scored, line.coverage) == (20, 30, pytest.approx(0.75))
    assert (board.line(DETECTOR).not_run, board.line(DETECTOR).coverage) == (0, pytest.approx(0.9))
    assert "Not run: Citation validity on 20 of 60 labels." in sentences(board)[-1]


def test_the_saved_threshold_is_measured_here_and_the_default_says_so(store: Store) -> None:
    filled(store)
    point = scoreboard(store).line(DETECTOR).point
    assert point is not None
    assert (point.saved, point.policy) == (False, "precision>=0.7")
    save(store, "manual:0.5")
    point = scoreboard(store).line(DETECTOR).point
    assert point is not None
    assert (point.saved, point.threshold, point.policy) == (True, 0.5, "manual:0.5")
    assert (
        point.precision.value
        == operating_points.choose_point(loading.load_evidence(store, DETECTOR), Policy("manual", 0.5)).precision.value
    )


@pytest.mark.parametrize("shared", [True, False])
def test_labels_of_one_source_count_as_one(store: Store, shared: bool) -> None:
    """Every trace four times: with its source known to be one, the intervals are those of a quarter of the labels."""
    labels, scores = draw(40, ties=False)
    values = [0.5 if one is None else one for one in scores]
    made = [(place, copy) for place in range(40) for copy in range(4)]
    traces = [
        Trace(f"t{place}-{copy}", f"answer {place} {copy}", group=f"g{place}" if shared else None)
        for place, copy in made
    ]
    verdicts = [
        Label(t.id, "", "hallucinated" if labels[p] else "clean") for t, (p, _) in zip(traces, made, strict=True)
    ]
    records = [Record(1, trace, (label,)) for trace, label in zip(traces, verdicts, strict=True)]
    store.traces.add(records, labels_as="gold", now=NOW)
    give_scores(store, traces, [values[place] for place, _ in made])
    line = scoreboard(store).line(DETECTOR)
    assert line.point is not None
    flagged = np.array(values) <= line.point.threshold
    hits = int((flagged & np.array(labels)).sum())
    quarter = figures(sweep(labels, values, flag_when="below"), line.point.threshold)
    for name, total in (("precision", flagged.sum()), ("recall", sum(labels))):
        ours = getattr(line.point, name)
        assert ours.value == pytest.approx(hits / total)
        ratio = _width(ours) / _width(getattr(quarter, name))
        # A little wider: the variance of a dozen sources is itself uncertain (Student's t).
        assert 0.95 < ratio < 1.35 if shared else ratio < 0.8


def _width(figure: Interval) -> float:
    assert figure.low is not None
    assert figure.high is not None
    return figure.high - figure.low


@pytest.mark.parametrize(
    ("usages", "calls", "cost"),
    [
        ([Usage(requests=1, cost=0.002), Usage(cached=1)], 1.0, 2.0),  # the cached one will be paid for on new traffic
        ([Usage(requests=2, cost=None), Usage(requests=1, cost=0.1)], 1.5, None),
        ([Usage(cached=2), Usage(cached=2)], 2.0, None),
        ([None, None], 0.0, 0.0),
    ],
)
def test_what_a_trace_takes(store: Store, usages: list[Usage | None], calls: float, cost: float | None) -> None:
    config = fill(store, [True, False] * 6, [None] * 12)
    hashes = [content for _, content in next(store.traces.keys(TraceFilter()))]
    scores = [
        Score("", 0.5, seconds=0.001 * (place + 1), usage=usage, evidence=(Evidence("why"),) if place else ())
        for place, usage in enumerate(usages)
    ]
    store.scores.save(config.id, list(zip(hashes, scores, strict=False)), now=NOW)
    spent = scoreboard(store).line(DETECTOR).spent
    assert spent.milliseconds == pytest.approx(1.5)
    assert (spent.calls, spent.explains) == (calls, True)
    assert spent.cost_per_1000 == (None if cost is None else pytest.approx(cost))


def test_one_class_three_labels_and_equal_scores_are_told_not_ranked(store: Store) -> None:
    fill(store, [True, True, True, None], [0.5] * 4)
    board = scoreboard(store)
    line = board.line(DETECTOR)
    assert (line.auroc.value, line.point, board.leader) == (None, None, None)
    assert sentences(board)[0].startswith("No detector can be ranked")
    assert as_csv(IN_FILES, board.lines).count("\n") == 4


def test_nothing_scored_says_what_to_do(store: Store) -> None:
    with pytest.raises(BadInput, match="no detector has scores yet"):
        scoreboard(store)


def test_the_csv_reads_back_sorted_by_any_column_and_runs_no_formula(store: Store) -> None:
    filled(store)
    board = scoreboard(store)
    rows = list(csv.DictReader(io.StringIO(as_csv(IN_FILES, board.lines))))
    assert [row["detector"] for row in rows] == [line.name for line in board.lines]
    assert [float(row["auroc"]) for row in rows] == [line.auroc.value for line in board.lines]
    hostile = replace(board.lines[0], name='=HYPERLINK("http://evil")')
    text = as_csv(IN_FILES, (hostile,))
    assert next(csv.DictReader(io.StringIO(text)))["detector"] == '\'=HYPERLINK("http://evil")'
    for start in "=+-@\t\r\n＝＋－＠":
        assert cell(f"{start}1") == f"'{start}1"
    assert (cell(-1.5), cell("≤ 0.5"), cell(""), cell(None)) == (-1.5, "≤ 0.5", "", None)


def test_a_map_is_kept_with_the_saved_point(store: Store) -> None:
    filled(store)
    mapped = probability.fit(store, DETECTOR)
    with pytest.raises(BadInput, match="none is saved: save one first"):
        probability.save(store, mapped, by="ann", now=NOW)
    save(store, "precision>=0.7")
    before = store.points.latest()[DETECTOR]
    for _ in range(2):
        probability.save(store, mapped, by="bob", now=NOW)
    after = store.points.latest()[DETECTOR]
    assert probability.kept_map(after) == mapped.fitted.map
    assert probability.kept_map(before) is None
    assert (after.point, after.config_id) == (before.point, before.config_id)
    assert replace(after.data, probability_map=None) == before.data
    found = build_candidate(store, ReleaseRequest(by="ann"), points=store.points.latest(), previous=None, now=NOW)
    kept = from_json(to_json(found)).detectors[DETECTOR].probability_map
    assert kept == probability.released(mapped.fitted)
    assert kept is not None
    assert kept.map.probability(0.3) == pytest.approx(float(mapped.fitted.map.probability(0.3) or 0))


def test_too_few_labels_name_the_detector(store: Store) -> None:
    fill(store, [True, False] * 5, [0.1, 0.9] * 5, name=ABOVE)
    with pytest.raises(NotEnoughLabels, match=f"{ABOVE}: 5 hallucinated labels"):
        probability.fit(store, ABOVE)


def test_the_command_line(sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = open_store(sqlite_url)
    filled(opened)
    at = ("--store", sqlite_url, "--json")
    out = tmp_path / "board.csv"
    assert main(["scoreboard", "--csv", str(out), *at]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["leader"], document["scored_nothing"]) == (DETECTOR, {SILENT: "abstained: no context"})
    assert (
        out.read_text(encoding="utf-8") == as_csv(IN_FILES, scoreboard(opened).lines).replace("\r\n", "\n")
        or out.stat().st_size
    )
    assert main(["scoreboard", "--csv", str(out), *at]) == 2
    assert "--force replaces it" in json.loads(capsys.readouterr().out)["error"]

    assert main(["probability", DETECTOR, "--save", *at]) == 2
    capsys.readouterr()
    save(opened, "elbow")
    assert main(["probability", DETECTOR, "--save", *at]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["saved"]
    assert document["map"]["kind"] == "ridge_logistic"
    assert document["out_of_fold"]["n"] == 54
    assert document["out_of_fold"]["brier"]["value"] > document["apparent"]["brier"]["value"]
    assert main(["scoreboard", "--store", sqlite_url]) == 0
    assert "saved" in capsys.readouterr().out
    opened.close()
