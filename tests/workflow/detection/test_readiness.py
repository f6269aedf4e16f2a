"""What is said of a detector before it runs is what a run then does."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from calibrate import registry
from calibrate.cli import main
from calibrate.detectors.base import missing
from calibrate.engines.run import Tally
from calibrate.ingest.inspection.profile import Profiler
from calibrate.report.sentences.detection import readiness as sentences
from calibrate.types import Chosen, Record, Score, Source, Token, Trace, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.detection.readiness import Group, Readiness, Standing, by_cause, by_field, readiness, total_of
from calibrate.workflow.detection.usable import usable
from calibrate.workspace import Workspace, using
from db import Store
from tests.tiny_grounding import modernbert
from tests.workflow.making import NOW

NEEDS = ("answer", "question", "retrieved", "sources", "context", "tokens", "alternatives", "schema")
EVERYTHING = {"all": True}


@pytest.fixture(autouse=True)
def _own_workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("TOUCHSTONE_CHAT_URL", "TOUCHSTONE_CHAT_MODEL", "TOUCHSTONE_NLI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    with using(Workspace()):
        yield


def every_kind() -> list[Trace]:
    """A trace for each way to have or to lack the fields; what is there but empty counts as lacking."""
    choices: tuple[tuple[Any, ...], ...] = (
        ("Two years.", " \n\t"),
        (None, "", "How long?"),
        (
            (),
            (Source("1", "Text."),),
            (Source("1", "Text.", retrieval_score=0.5),),
            (Source("1", "", retrieval_score=0.5),),
        ),
        (None, "Text."),
        (None, (), (Token("Two years.", -0.1),)),
        ((), ("One.",), ("One.", "Two.")),
        (None, False, {"type": "object"}),
    )
    return [
        Trace(f"t{n}", answer=a, question=q, sources=s, context=c, tokens=t, alternatives=o, schema=j)
        for n, (a, q, s, c, t, o, j) in enumerate(itertools.product(*choices))
    ]


def put(store: Store, traces: list[Trace]) -> None:
    store.traces.add([Record(n, trace, ()) for n, trace in enumerate(traces, 1)], labels_as=None, now=NOW)


def the(store: Store, name: str, scope: dict[str, Any] = EVERYTHING) -> Readiness:
    return next(row for row in readiness(store, scope) if row.detector.name == name)


@pytest.mark.both_databases
def test_the_store_counts_the_fields_that_a_run_looks_for(store: Store) -> None:
    traces = every_kind()
    put(store, traces)
    drawn = Trace("drawn", answer="Two.", context="Text.")
    purged = Trace("purged", answer="Two.", context="Text.", question="How long?")
    put(store, [drawn, purged])
    store.drawn.save(drawn.content_hash(), ["One.", "Three."], {}, detectors=[], now=NOW)
    store.purges.remove(Chosen(None, ("purged",), ()), by="ann", now=NOW)
    kept = store.traces.load([pk for chunk in store.traces.keys(TraceFilter(), chunk=1000) for pk, _ in chunk])
    counted = store.coverage.fields()
    assert counted.total() == len(traces) + 2
    for need in NEEDS:
        expected = sum(missing(frozenset({need}), trace) is None for trace in kept)
        assert sum(n for present, n in counted.items() if need in present) == expected, need
    rated = sum(any(s.retrieval_score is not None for s in trace.sources) for trace in kept)
    assert sum(n for present, n in counted.items() if "retrieval_scores" in present) == rated


def test_a_file_that_is_not_imported_is_said_to_serve_the_same_detectors(store: Store) -> None:
    profiler = Profiler()
    for n, trace in enumerate(every_kind(), 1):
        profiler.add(Record(n, trace, ()))
    put(store, every_kind())
    stored = {row.detector.name: row.lacks for row in readiness(store, EVERYTHING)}
    before = {row.name: row.lacks for row in usable(profiler.profile())}
    assert {name: {need: n for need, n in stored[name].items() if n} for name in before} == before


def test_passages_of_which_only_scores_are_logged_serve_retrieval_confidence_alone() -> None:
    profiler = Profiler()
    profiler.add(Record(1, Trace("t", "Two years.", sources=(Source("1", "", None, 0.9),)), ()))
    able = {row.name for row in usable(profiler.profile()) if row.able}
    assert "retrieval_confidence" in able
    assert able.isdisjoint({"rouge_l", "token_overlap", "nli", "citation_validity"})


def test_what_is_said_beforehand_is_what_a_run_scores(store: Store) -> None:
    """Every detector that needs no model: it scores as many traces as were said, or fewer by its own judgement."""
    put(store, [trace for trace in every_kind() if trace.answer.strip()][::7])
    rows = {row.detector.name: row for row in readiness(store, EVERYTHING)}
    names = ["token_overlap", "word_overlap", "token_logprob", "schema", "selfcheck_unigram", "retrieval_confidence"]
    assert all(rows[name].group == Group.READY for name in names)
    assert all(rows[name].standing == Standing.NEVER for name in names)
    detect.queue(store, names, EVERYTHING)
    run = detect.work(store)
    assert run is not None
    for name in names:
        tally = run.counts[name]
        lacking = rows[name].total - rows[name].able
        assert tally["abstained"] + tally["refusals"] >= lacking
        assert tally["scored"] <= rows[name].able
    for name in ("token_overlap", "token_logprob", "selfcheck_unigram", "retrieval_confidence"):
        assert run.counts[name]["scored"] == rows[name].able, name


def test_refusals_and_abstentions_are_not_said_to_be_scorable(store: Store) -> None:
    """Of ten traces three are refusals, two cite nothing, and one has no answer."""
    cited, context = (Source("1", "Two years."),), "Two years."
    traces = [Trace(f"t{n}", answer=f"Two years, says note {n} [1].", sources=cited) for n in range(4)]
    traces += [
        Trace(f"r{n}", question=f"Question {n}?", answer="I cannot answer that.", sources=cited) for n in range(3)
    ]
    traces += [Trace(f"u{n}", answer=f"Two years, says note {n}.", context=context) for n in range(2)]
    traces += [Trace("e", answer=" ", sources=cited)]
    put(store, traces)
    before = the(store, "citation_grounding")
    assert sentences.can_score(before).startswith("up to ")
    detect.work(store, run_id=detect.queue(store, ["citation_grounding", "token_overlap"], EVERYTHING).id)
    for name in ("citation_grounding", "token_overlap"):
        row = the(store, name)
        assert row.coverage.refusals == 3
        assert row.able == row.coverage.scored
        assert sentences.can_score(row) == f"{row.coverage.scored} of 10"
    assert the(store, "token_overlap").able == 6
    assert the(store, "citation_grounding").able == 4
    put(store, [Trace("new", answer="Two years, says the last note [1].", sources=cited)])
    assert (the(store, "token_overlap").able, sentences.can_score(the(store, "token_overlap"))) == (7, "up to 7 of 11")


def test_traces_without_tokens_name_the_field_and_who_waits_for_it(store: Store) -> None:
    put(store, [Trace(f"t{n}", answer=f"Answer {n}.", sources=(Source("1", f"Text {n}."),)) for n in range(5)])
    rows = readiness(store, EVERYTHING)
    fields = by_field(rows)
    assert {row.detector.name for row in fields["tokens"]} == {"entropy_z", "token_logprob"}
    assert {row.detector.name for row in fields["schema"]} == {"schema"}
    assert {row.detector.name for row in fields["retrieval_scores"]} == {"retrieval_confidence"}
    assert "selfcheck_judge" in {row.detector.name for row in fields["alternatives"]}  # no endpoint would help it
    assert all(row.able == 0 for group in fields.values() for row in group)
    assert sentences.lacking("tokens", fields["tokens"]) == "log-probabilities of tokens: on 0 of 5 traces"
    assert set(sentences.HOW_TO_LOG) == set(sentences.FIELDS) == set(sentences.EXAMPLES)
    for example in sentences.EXAMPLES.values():
        json.loads(f"{{{example}}}")


def test_one_cause_is_said_once_for_all_who_wait(store: Store) -> None:
    put(store, [Trace("t", answer="Answer.", context="Text.")])
    causes = by_cause(readiness(store, EVERYTHING))
    judges = next(rows for cause, rows in causes.items() if "no chat endpoint" in cause)
    assert {row.detector.name for row in judges} == {
        "claim_nli", "judge_score", "judge_template", "judge_verdict", "judge_yes_no",
    }  # fmt: skip
    assert sum("no chat endpoint" in cause for cause in causes) == 1


def test_what_is_due_is_what_has_no_scores_or_stale_ones(store: Store) -> None:
    traces = [Trace(f"t{n}", answer=f"Answer {n}.", context="Text.") for n in range(4)]
    put(store, traces)
    assert the(store, "token_overlap").is_due
    detect.work(store, run_id=detect.queue(store, ["token_overlap"], EVERYTHING).id)
    row = the(store, "token_overlap")
    assert (row.standing, row.is_due, row.plan.traces) == (Standing.DONE, False, 0)
    put(store, [Trace("new", answer="Another answer.", context="Text.")])
    row = the(store, "token_overlap")
    assert (row.standing, row.is_due, row.coverage.waiting) == (Standing.WAITING, True, 1)
    assert row.plan.seconds is not None
    # With other parameters it has no scores; with a version that is gone its scores are stale.
    (plain,) = readiness(store, EVERYTHING, [registry.make("token_overlap", {"variant": "plain"})])
    assert (plain.standing, plain.is_due, plain.plan.traces) == (Standing.SETTINGS, True, 5)
    word = registry.make("word_overlap")
    old = store.scores.config("word_overlap", "0", registry.config_of(word), "", now=NOW)
    store.scores.save(old.id, [(trace.content_hash(), Score(trace.id, 0.5)) for trace in traces], now=NOW)
    assert (the(store, "word_overlap").standing, the(store, "word_overlap").is_due) == (Standing.CHANGED, True)


def test_looking_writes_nothing(store: Store) -> None:
    put(store, [Trace("t", answer="Answer.", context="Text.")])
    before = store.revision()
    readiness(store, EVERYTHING)
    assert store.revision() == before


def test_a_judge_is_priced_and_never_due_by_itself(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_CHAT_URL", "http://127.0.0.1:9/v1")  # nobody listens
    monkeypatch.setenv("TOUCHSTONE_CHAT_MODEL", "gpt-4o-mini")
    put(store, [Trace(f"t{n}", answer=f"Answer {n}.", context="Text.") for n in range(3)])
    row = the(store, "judge_yes_no")
    assert (row.group, row.is_due) == (Group.READY, False)
    assert row.plan.estimate is not None
    assert row.plan.estimate.requests == 3
    assert sentences.cost(row).startswith("≤ ")
    total = total_of([row, the(store, "token_overlap")])
    assert (total.asks, total.unpriced, total.untimed) == (1, 0, 2)
    assert sentences.of_run(total).startswith("time unknown until a first run · at most ")
    assert sentences.of_run(replace(total, untimed=0, seconds=540.0, asks=0)) == "about 9 min"


def test_a_detector_that_failed_on_all_says_so_until_it_scores(store: Store) -> None:
    put(store, [Trace(f"t{n}", answer=f"Answer {n}.", context="Text.") for n in range(3)])
    run = detect.queue(store, ["token_overlap"], EVERYTHING)
    store.runs.claim("w", now=NOW, run_id=run.id)
    tally = Tally(failed=3, why=Counter({"<b>it broke</b>\n": 3}), failed_on_all=True)
    store.runs.progress(run.id, "w", total=3, done=3, counts={"token_overlap": tally.to_json()}, now=NOW)
    store.runs.finish(run.id, "w", "incomplete", now=NOW)
    row = the(store, "token_overlap")
    assert row.failure is not None
    assert (row.failure.failed, row.run, row.is_due) == (3, run.id, False)
    assert sentences.failed(row) == "Failed on all 3: <b>it broke</b>"
    detect.work(store, run_id=detect.queue(store, ["token_overlap"], EVERYTHING).id)
    assert the(store, "token_overlap").failure is None


def test_a_run_that_was_stopped_at_once_tells_no_speed(store: Store) -> None:
    """One trace in thirty seconds: the model was loaded meanwhile."""
    put(store, [Trace(f"t{n}", answer=f"Answer {n}.", context="Text.") for n in range(3)])
    run = detect.queue(store, ["token_overlap"], EVERYTHING)
    store.runs.claim("w", now=NOW, run_id=run.id)
    tally = Tally(scored=1, seconds=30.0)
    store.runs.progress(run.id, "w", total=3, done=1, counts={"token_overlap": tally.to_json()}, now=NOW)
    store.runs.finish(run.id, "w", "stopped", now=NOW + timedelta(seconds=30))
    assert the(store, "token_overlap").plan.seconds is None


def test_a_run_says_how_far_it_is_with_each_detector(store: Store) -> None:
    """Those scored before count as done: of four traces two had scores, and one is stopped half way."""
    put(store, [Trace(f"t{n}", answer=f"Answer {n}.", context="Text.") for n in range(2)])
    detect.work(store, run_id=detect.queue(store, ["token_overlap"], EVERYTHING).id)
    put(store, [Trace(f"u{n}", answer=f"Another {n}.", context="Text.") for n in range(2)])
    run = detect.work(store, run_id=detect.queue(store, ["token_overlap", "word_overlap"], EVERYTHING).id)
    assert run is not None
    assert {name: (tally["done"], tally["of"]) for name, tally in run.counts.items()} == {
        "token_overlap": (4, 4),
        "word_overlap": (4, 4),
    }


def test_the_command_prints_what_the_page_shows(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    put(store, [Trace(f"t{n}", answer=f"Answer {n}.", sources=(Source("1", f"Text {n}."),)) for n in range(5)])
    assert main(["detect", "--list", "--all", "--json", "--store", store.url]) == 0
    document = json.loads(capsys.readouterr().out)["detectors"]
    rows = readiness(store, EVERYTHING)
    assert {name: (each["group"], each["able"]) for name, each in document.items()} == {
        row.detector.name: (str(row.group), row.able) for row in rows
    }
    assert main(["detect", "--list", "--all", "--store", store.url]) == 0
    text = capsys.readouterr().out
    assert "- log-probabilities of tokens: on 0 of 5 traces. Ask the model for `logprobs`" in text
    assert text.count("No chat endpoint is set") == 1
    assert store.runs.recent() == []


def test_a_model_that_a_parameter_named_counts_as_ready(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No variable names a model, and traces are scored by one all the same: the row is that of these scores."""
    monkeypatch.delenv("TOUCHSTONE_SPANS_MODEL", raising=False)
    put(store, [Trace(f"t{n}", answer=f"Two years {n}.", sources=(Source("1", "Two."),)) for n in range(3)])
    assert the(store, "grounded_spans").group == Group.SETUP
    folder = modernbert(tmp_path / "model", task="token")
    detect.work(store, run_id=detect.queue(store, ["grounded_spans"], EVERYTHING, params={"model": str(folder)}).id)
    row = the(store, "grounded_spans")
    assert (row.group, row.standing, row.coverage.scored) == (Group.READY, Standing.DONE, 3)
    assert row.settings == {"model": str(folder)}
    assert sentences.standing(row).startswith("3 of 3 scored, with model ")
    assert registry.config_of(row.detector)["model"] == str(folder)
    (asked,) = readiness(store, EVERYTHING, [registry.make("grounded_spans", {"window": 256})])
    assert asked.group == Group.SETUP, "settings that somebody chose stay"
    (folder / "model.safetensors").unlink()
    assert the(store, "grounded_spans").group == Group.SETUP
