"""Detectors: coverage as counted by hand, speed from the newest run, estimates, files, two settings side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from calibrate import registry
from calibrate.backends.text.refusals import find_refusal
from calibrate.cli import main
from calibrate.detectors.base import Detector
from calibrate.errors import BadInput
from calibrate.types import Label, Member, Record, Score, Source, Trace, TraceFilter
from calibrate.workflow.detection import detect, team_files
from calibrate.workflow.detection import detectors as step
from calibrate.workflow.tuning import compare
from calibrate.workspace import Workspace, using
from db import Store
from tests.workflow.making import DETECTOR, NOW, draw, fill, give_scores, keep_sample

JUDGE = "judge_yes_no"
PROMPT = "prompts/judge_yes_no.txt"


@pytest.fixture(autouse=True)
def _own_workspace() -> Iterator[None]:
    with using(Workspace()):
        yield


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint that nobody listens at: an estimate must not ask it."""
    monkeypatch.setenv("TOUCHSTONE_CHAT_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", "gpt-4o-mini")


def put(store: Store, traces: Sequence[Trace], *, sample: str | None = None) -> None:
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)
    if sample is not None:
        keys = [store.traces.find(trace.id) or 0 for trace in traces]
        store.samples.add(
            sample, design="random", by=None, seed=1, pool=len(keys), undated=0, where=TraceFilter(),
            strata={"all": (len(keys), len(keys))}, members=[Member(key, 1.0, "all") for key in keys], now=NOW,
        )  # fmt: skip


def give(store: Store, detector: Detector, scores: dict[str, Score], *, later: int = 0) -> None:
    """Scores by content, as a run of the detector keeps them."""
    key = detect.config_id(store, detector)
    store.scores.save(key, list(scores.items()), now=NOW + timedelta(minutes=later))


def five() -> list[Trace]:
    return [Trace(f"t{n}", answer=f"Answer {n}.", sources=(Source("1", f"Text {n}."),)) for n in range(5)]


def many() -> list[Trace]:
    """Enough for a run to take a measurable time."""
    return [Trace(f"t{n}", answer=f"Answer {n} {n + 1}.", context=f"Text {n}. " * 20) for n in range(400)]


def the(rows: Sequence[step.Overview], name: str) -> step.Overview:
    return next(row for row in rows if row.detector.name == name)


def test_coverage_counts_every_trace_once_with_its_reason(store: Store) -> None:
    traces = five()
    put(store, [*traces, Trace("beside", answer="Not in the sample.")])
    put_sample(store, "w47", [trace.id for trace in traces])
    hashes = [trace.content_hash() for trace in traces]
    detector = registry.make(DETECTOR)
    give(
        store,
        detector,
        {
            hashes[0]: Score("t0", 0.5),
            hashes[1]: Score("t1", None, "no context", "abstained"),
            hashes[2]: Score("t2", None, "a refusal: “I cannot say one.”", "refusal"),
            hashes[3]: Score("t3", None, "it broke", "failed"),
            Trace("beside", answer="Not in the sample.").content_hash(): Score("beside", 0.1),
        },
    )
    covered = step.coverage(store, detector, {"sample": "w47"})
    assert (covered.total, covered.scored, covered.abstained, covered.refusals, covered.failed) == (5, 1, 1, 1, 1)
    assert covered.why == {"no context": 1, "a refusal": 1, "it broke": 1}
    assert covered.waiting == 1
    assert covered.to_do == 2  # the one not asked about, and the one that failed
    assert covered.share == 0.2
    assert step.coverage(store, detector, {"all": True}).scored == 2
    assert step.coverage(store, registry.make(DETECTOR, {"variant": "plain"}), {"sample": "w47"}).to_do == 5
    with pytest.raises(BadInput, match="there is no sample 'w48'"):
        step.coverage(store, detector, {"sample": "w48"})


def put_sample(store: Store, name: str, ids: Sequence[str]) -> None:
    keys = [store.traces.find(one) or 0 for one in ids]
    store.samples.add(
        name, design="random", by=None, seed=1, pool=len(keys), undated=0, where=TraceFilter(),
        strata={"all": (len(keys), len(keys))}, members=[Member(key, 1.0, "all") for key in keys], now=NOW,
    )  # fmt: skip


def test_refusals_count_as_one_reason_however_they_are_worded(store: Store) -> None:
    traces = five()
    put(store, traces, sample="w47")
    said = {t.content_hash(): Score(t.id, None, f"a refusal: “{t.answer}”", "refusal") for t in traces}
    give(store, registry.make(DETECTOR), said)
    assert step.coverage(store, registry.make(DETECTOR), {"sample": "w47"}).why == {"a refusal": 5}


def test_the_overview_is_of_the_configuration_used_last_on_these_traces(store: Store) -> None:
    traces = five()
    put(store, traces, sample="w47")
    hashes = [trace.content_hash() for trace in traces]
    give(store, registry.make(DETECTOR), {one: Score("", 0.5) for one in hashes}, later=1)
    plain = registry.make(DETECTOR, {"variant": "plain"})
    give(store, plain, {one: Score("", 0.5) for one in hashes[:2]}, later=2)
    rows = step.overview(store, {"sample": "w47"})
    assert [row.detector.name for row in rows] == registry.names()
    row = the(rows, DETECTOR)
    assert row.config is not None
    assert row.config.params["variant"] == "plain"
    assert (row.coverage.scored, row.coverage.to_do) == (2, 3)
    other = the(rows, "rouge_l")
    assert (other.config, other.coverage.to_do, other.measured) == (None, 5, None)


def test_a_run_leaves_its_speed_and_nothing_to_do(store: Store) -> None:
    put(store, many(), sample="w47")
    scope = {"sample": "w47"}
    detector = registry.make(DETECTOR)
    before = step.plan(store, detector, scope, step.coverage(store, detector, scope))
    assert (before.traces, before.rate, before.seconds, before.estimate) == (400, None, None, None)
    finished = detect.work(store, run_id=detect.queue(store, [DETECTOR], scope).id)
    assert finished is not None
    row = the(step.overview(store, scope), DETECTOR)
    assert (row.coverage.scored, row.coverage.to_do) == (400, 0)
    assert row.measured is not None
    assert (row.measured.run, row.measured.scored) == (finished.id, 400)
    again = detect.work(store, run_id=detect.queue(store, [DETECTOR], scope).id)  # everything is reused
    assert again is not None
    assert the(step.overview(store, scope), DETECTOR).measured == row.measured


def test_the_time_left_is_by_the_newest_run_with_these_parameters(store: Store) -> None:
    put(store, five(), sample="w47")
    detector = registry.make(DETECTOR)
    for seconds, params in ((2.0, {"variant": "plain"}), (10.0, registry.config_of(detector)), (4.0, {"x": 1})):
        run = store.runs.queue([{"name": DETECTOR, "params": params}], {"all": True}, now=NOW)
        store.runs.claim("w", now=NOW, run_id=run.id)
        tally = {"scored": 20, "seconds": seconds}
        store.runs.progress(run.id, "w", total=20, done=20, counts={DETECTOR: tally}, now=NOW)
        store.runs.finish(run.id, "w", "done", now=NOW)
    scope = {"sample": "w47"}
    found = step.plan(store, detector, scope, step.coverage(store, detector, scope))
    assert (found.rate, found.seconds) == (2.0, 2.5)


def test_what_a_model_is_missing_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOUCHSTONE_CHAT_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    found = step.status(store, registry.make(JUDGE))
    assert found.state == "missing"
    assert "TOUCHSTONE_CHAT_URL" in str(found.how)
    assert step.status(store, registry.make(DETECTOR)) == step.Status("no model needed")


@pytest.mark.usefixtures("endpoint")
def test_a_judge_says_what_it_would_ask_and_cost(store: Store) -> None:
    refused = Trace("no", answer="I cannot answer that question.", sources=(Source("1", "Text."),))
    traces = [*five(), refused]
    put(store, traces, sample="w47")
    judge = registry.make(JUDGE)
    assert step.asks_chat(judge)
    assert not step.asks_chat(registry.make(DETECTOR))
    scope = {"sample": "w47"}
    found = step.plan(store, judge, scope, step.coverage(store, judge, scope))
    requests = [one for trace in five() for one in judge.requests(trace)]  # type: ignore[attr-defined]
    assert found.estimate is not None
    assert (found.estimate.requests, found.looked_at) == (len(requests), 6)
    # The packaged price of gpt-4o-mini: 0.15 and 0.60 US dollars a million tokens.
    cost = (found.estimate.prompt_tokens * 0.15 + found.estimate.completion_tokens * 0.60) / 1e6
    assert found.estimate.cost == pytest.approx(cost)
    assert found.estimate.completion_tokens == sum(one.max_tokens for one in requests)

    team_files.save(store, "prices.csv", "model,prompt,completion,as_of\nother,1,1,\n", by="ann", now=NOW)
    unknown = step.plan(store, judge, scope, step.coverage(store, judge, scope))
    assert unknown.estimate is not None
    assert unknown.estimate.cost is None


@pytest.mark.usefixtures("endpoint")
def test_an_estimate_looks_at_a_part_and_scales(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, [Trace(f"t{n}", answer="Same length.", context=f"Context {n:03d}.") for n in range(60)], sample="w47")
    monkeypatch.setattr(step, "ENOUGH_REQUESTS", 10)
    judge, scope = registry.make(JUDGE), {"sample": "w47"}
    found = step.plan(store, judge, scope, step.coverage(store, judge, scope))
    assert found.looked_at == 10
    assert found.estimate is not None
    assert found.estimate.requests == 60


@pytest.mark.usefixtures("endpoint")
def test_another_wording_begins_anew(store: Store) -> None:
    traces = five()
    put(store, traces, sample="w47")
    judge, scope = registry.make(JUDGE), {"sample": "w47"}
    assert step.prompt_of(judge) == PROMPT
    assert step.prompt_of(registry.make(DETECTOR)) is None
    give(store, judge, {trace.content_hash(): Score(trace.id, 0.5) for trace in traces})
    assert step.coverage(store, judge, scope).to_do == 0
    text = team_files.get(store, PROMPT).text
    assert team_files.save(store, PROMPT, text + "\nBe strict.\n", by="ann", now=NOW)
    assert step.coverage(store, judge, scope).to_do == 5
    assert team_files.reset(store, PROMPT, by="ann", now=NOW)
    assert step.coverage(store, judge, scope).to_do == 0


@pytest.mark.both_databases
def test_a_file_has_a_history_and_can_be_ours_again(store: Store) -> None:
    ours = team_files.get(store, PROMPT)
    assert (ours.ours, ours.history, ours.used_by) == (True, [], [JUDGE])
    assert not team_files.reset(store, PROMPT, by="ann", now=NOW)
    assert not team_files.save(store, PROMPT, ours.text, by="ann", now=NOW)
    assert team_files.save(store, PROMPT, ours.text.replace("\n", "\r\n") + "More.", by="ann", now=NOW)
    mine = team_files.get(store, PROMPT)
    assert mine.text == ours.text + "More."
    assert (mine.ours, mine.history[0].saved_by, mine.history[0].saved_at) == (False, "ann", NOW)
    assert mine.version != ours.version
    with using(detect.workspace_of(store)):
        from calibrate.backends.files import version

        assert version(PROMPT) == mine.version
    assert team_files.save(store, PROMPT, ours.text, by="bob", now=NOW)  # typed in again, it is ours
    assert team_files.get(store, PROMPT).ours
    assert [one.text is None for one in team_files.get(store, PROMPT).history] == [True, False]


def test_a_list_of_refusals_of_the_teams_own_is_kept_and_used(store: Store) -> None:
    text = "# ours\n[declines]  # what declines\nnot my department\n"
    assert team_files.save(store, "refusals/en.txt", text, by="ann", now=NOW)
    with using(detect.workspace_of(store)):
        assert find_refusal("Not my department.") == "Not my department."
        assert find_refusal("I cannot answer that.") is None


@pytest.mark.parametrize("size", [1, 3, 9, 10, 11])
def test_a_run_over_a_sample_has_every_trace_once_however_it_is_cut(
    store: Store, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    put(store, [Trace(f"t{n}", f"answer {n}") for n in range(10)], sample="w")
    monkeypatch.setattr(detect, "CHUNK", size)
    total, chunks = detect.traces_of(store, {"sample": "w"})
    chunks = list(chunks)
    sample = store.samples.get("w")
    assert sample is not None
    assert [pair for chunk in chunks for pair in chunk] == list(store.samples.keys(sample.id))
    assert (total, max(map(len, chunks))) == (10, min(size, 10))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (PROMPT, "Is {answer} right?", "lacks {context}"),
        (PROMPT, "{context} {answer} {fence} {secret}", "{secret}, which nothing fills"),
        ("prices.csv", "model,prompt,completion,as_of\nx,cheap,1,\n", "line 2: 'cheap' is no price"),
        ("refusals/en.txt", "[declines]\nno\n[perhaps]\n", "no section [perhaps]"),
        ("refusals/en.txt", "the\n", "begin with a line [declines]"),
        ("refusals/en.txt", "[declines]  # nothing\n", "a phrase below it"),
        ("refusals/en.txt", "no\0", "NUL"),
        ("refusals/en.txt", "no \ud800", "lone surrogate"),
        ("refusals/en.txt", "no " * 100_000, "at most 200,000"),
        ("prompts/judge.txt", "text", "there is no file 'prompts/judge.txt'; there are: "),
    ],
)
def test_a_text_that_cannot_be_used_is_refused_and_nothing_kept(store: Store, name: str, text: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        team_files.save(store, name, text, by="ann", now=NOW)
    assert said in str(caught.value)
    assert store.files.current() == {}


def test_two_settings_are_compared_where_both_scored(store: Store) -> None:
    labels, scores = draw(80)
    traces = [Trace(f"t{n}", answer=f"answer {n}", context="text", group=f"g{n // 5}") for n in range(80)]
    verdicts = ["hallucinated" if bad else "clean" for bad in labels]
    records = [
        Record(n, trace, (Label(trace.id, "", verdict),))  # type: ignore[arg-type]
        for n, (trace, verdict) in enumerate(zip(traces, verdicts, strict=True))
    ]
    store.traces.add(records, labels_as="gold", now=NOW)
    one = give_scores(store, traces, scores)
    others: list[float | None] = [None if n % 7 == 3 else 0.1 * n % 1 for n in range(80)]
    two = second(store, others)
    found = compare.compare(store, one, two)
    both = [n for n in range(80) if scores[n] is not None and others[n] is not None]
    y = np.array([labels[n] for n in both])
    first, other = (-np.array([given[n] for n in both], dtype=float) for given in (scores, others))
    result = found.result
    assert (result.n, result.positives) == (len(both), int(y.sum()))
    assert result.first is not None
    assert result.second is not None
    assert result.first.auroc == pytest.approx(roc_auc_score(y, first))
    assert result.second.average_precision == pytest.approx(average_precision_score(y, other))
    assert [curve.auroc for curve in found.curves] == pytest.approx([result.first.auroc, result.second.auroc])
    assert result.clusters == len({n // 5 for n in both})  # five traces share their sources
    assert compare.compare(store, one, two).result == result


def test_a_stratified_sample_weighs_the_comparison(store: Store) -> None:
    labels, scores = draw()
    fill(store, labels, scores)
    one = store.scores.configs(DETECTOR)[0]
    strata = ["small" if place < 20 else "large" for place in range(60)]
    keep_sample(store, strata, {"small": 40, "large": 4000})
    others = [float(n % 11) for n in range(60)]
    result = compare.compare(store, one, second(store, list(others)), sample="w47").result
    there = [n for n in range(60) if scores[n] is not None]
    weights = [2.0 if n < 20 else 100.0 for n in there]
    expected = roc_auc_score([labels[n] for n in there], [-others[n] for n in there], sample_weight=weights)
    assert result.second is not None
    assert result.second.auroc == pytest.approx(expected)


def second(store: Store, scores: Sequence[float | None]) -> Any:
    config = store.scores.config(DETECTOR, "1", {"variant": "plain"}, "", now=NOW)
    traces = store.traces.load([store.traces.find(f"t{n}") or 0 for n in range(len(scores))])
    nothing = Score("", None, "no context", "abstained")
    pairs = zip(traces, scores, strict=True)
    store.scores.save(
        config.id,
        [(trace.content_hash(), nothing if value is None else Score("", value)) for trace, value in pairs],
        now=NOW + timedelta(minutes=1),
    )
    return config


def test_without_a_sample_the_labels_are_meant_and_without_labels_every_trace(store: Store) -> None:
    put(store, five())
    assert step.scope_at_hand(store, "w47") == {"sample": "w47"}
    assert step.scope_at_hand(store, None) == {"all": True}
    store.labels.add(store.traces.find("t0") or 0, Label("", "ann", "clean"), sample_id=None, now=NOW)
    assert step.scope_at_hand(store, None) == {"labelled": True}
    assert step.coverage(store, registry.make(DETECTOR), {"labelled": True}).total == 1


def test_what_lacks_a_score_is_found_configuration_by_configuration(store: Store) -> None:
    traces = five()
    put(store, [*traces, Trace("copy", answer=traces[0].answer, sources=traces[0].sources)])
    hashes = [trace.content_hash() for trace in traces]
    first, second = (registry.make(name) for name in (DETECTOR, "bleu"))
    given = Score("", 0.5)
    give(store, first, dict.fromkeys(hashes, given))
    give(store, second, dict.fromkeys(hashes[:3], given) | {hashes[3]: Score("", None, "no", "failed")})
    give(store, registry.make("rouge_l"), dict.fromkeys(hashes, given))
    one, other = (detect.config_id(store, detector) for detector in (first, second))
    key = {trace.id: store.traces.find(trace.id) for trace in traces}
    assert list(store.traces.lacking(TraceFilter(), [one])) == []
    assert list(store.traces.lacking(TraceFilter(), [one, other])) == [key["t3"], key["t4"]]
    assert list(store.traces.lacking(TraceFilter(label="labelled"), [other])) == []
    assert list(store.traces.hashes([key["t3"] or 0, key["t4"] or 0], chunk=1)) == [
        [(key["t3"], hashes[3])], [(key["t4"], hashes[4])],
    ]  # fmt: skip


def test_all_stands_alone() -> None:
    with pytest.raises(BadInput, match="stands alone"):
        detect.chosen_of(["all", "bleu"])


def test_the_command_line_says_what_a_run_would_take_and_runs_nothing(
    store: Store, endpoint: None, capsys: pytest.CaptureFixture[str]
) -> None:
    put(store, five())
    assert main(["detect", JUDGE, DETECTOR, "--all", "--estimate", "--json", "--store", store.url]) == 0
    found = json.loads(capsys.readouterr().out)["estimate"]
    assert (found[JUDGE]["traces"], found[JUDGE]["requests"], found[DETECTOR]["requests"]) == (5, 5, 0)
    assert found[JUDGE]["cost"] > 0
    assert store.runs.recent() == []


def test_the_command_line_says_what_each_engine_would_take(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, many())
    run = store.runs.queue([{"name": DETECTOR, "params": registry.config_of(registry.make(DETECTOR))}], {}, now=NOW)
    store.runs.claim("w", now=NOW, run_id=run.id)
    tally = {"scored": 20, "seconds": 1.0, "worker_seconds": 2.0, "memory": 150_000_000}
    store.runs.progress(run.id, "w", total=20, done=20, counts={DETECTOR: tally}, now=NOW)
    store.runs.finish(run.id, "w", "done", now=NOW)
    line = ["detect", DETECTOR, "rouge_l", "--all", "--estimate", "--workers", "4", "--store", store.url]
    assert main([*line, "--json"]) == 0
    engines = json.loads(capsys.readouterr().out)["estimate"][DETECTOR]["engines"]
    # 400 traces at 10 a second of a worker, with loading and saving.
    assert engines["local"] == {"workers": 1, "seconds": 40.0, "memory": 150_000_000}
    assert engines["processes"] == {"workers": 4, "seconds": 10.0, "memory": 600_000_000}
    assert main(line) == 0
    text = capsys.readouterr().out
    assert re.search(rf"{DETECTOR} +400 +40 s +10 s +600 MB", text)
    assert re.search(r"all +at least 40 s +at least 10 s", text)
    assert "known after a first run" in text


def test_settings_that_cannot_be_are_said_before_a_judge_runs(
    store: Store, endpoint: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, five())
    monkeypatch.setenv("TOUCHSTONE_CHAT_CONCURRENCY", "abc")
    assert main(["detect", JUDGE, "--all", "--store", store.url]) == 2
    assert "TOUCHSTONE_CHAT_CONCURRENCY cannot be 'abc'" in capsys.readouterr().err
    assert main(["detect", DETECTOR, "--all", "--store", store.url]) == 0
    monkeypatch.setenv("TOUCHSTONE_DEVICE", "tpu")
    assert main(["detect", DETECTOR, "--all", "--store", store.url]) == 2
    assert "'tpu'" in capsys.readouterr().err
