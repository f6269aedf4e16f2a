"""A team's traces in a real Phoenix come into the store, annotations too, and verdicts go back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate import cli
from calibrate.ingest.systems import open_annotator
from calibrate.types import Record, Source, Trace, TraceFilter
from calibrate.workflow.watching.annotating import compose
from db import Store
from tests.integrations.servers import Server
from tests.workflow.watching.test_watch import FEW, publish

client = pytest.importorskip("phoenix.client")
pytestmark = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
ROOT = Path(__file__).parents[2]


def shop(server: Server, project: str, count: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.run("phoenix_shop.py", project, str(count)).splitlines()]


def pull(
    store: Store, server: Server, project: str, *options: str, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    capsys.readouterr()
    command = ["pull", "phoenix", "--project", project, "--url", server.url, "--store", store.url, "--json", *options]
    assert cli.main(command) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def name(ids: dict[str, Any]) -> str:
    return f"{ids['trace']}-{ids['span']}"


def stored(store: Store, ids: dict[str, Any]) -> Trace:
    return store.traces.load([store.traces.keys_of([name(ids)])[name(ids)]])[0]


def annotate(server: Server, *annotations: dict[str, Any]) -> None:
    client.Client(base_url=server.url).spans.log_span_annotations(span_annotations=annotations, sync=True)


def annotations_of(server: Server, project: str, spans: Sequence[str]) -> list[dict[str, Any]]:
    read = client.Client(base_url=server.url).spans.get_span_annotations(span_ids=spans, project_identifier=project)
    return sorted(read, key=lambda each: (each["span_id"], each["name"]))


def test_answers_come_with_all_that_their_traces_say(
    store: Store, phoenix: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = shop(phoenix, "whole", 6)
    assert pull(store, phoenix, "whole", capsys=capsys)["imported"] == 6
    for n, ids in enumerate(answers):
        trace = stored(store, ids)
        assert (trace.question, trace.answer, trace.model) == (f"When does parcel {n} leave?", ids["answer"], "small-1")
        assert trace.sources == (Source("1", "parcels leave our warehouse before noon", "handbook", 0.75),)
        assert trace.timestamp is not None
        assert abs(trace.timestamp.timestamp() - ids["began"] / 1e9) < 2e-6  # Phoenix rounds to microseconds
        assert trace.attributes["session.id"] == f"s{n}"
    again = pull(store, phoenix, "whole", capsys=capsys)
    assert again["imported"] == 0
    assert store.traces.count(TraceFilter()) == 6
    assert pull(store, phoenix, "whole", "--restart", capsys=capsys)["duplicates"] == 6


def test_a_project_that_is_not_there_is_named_and_kept_nowhere(
    store: Store, phoenix: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["pull", "phoenix", "--project", "nope", "--url", phoenix.url, "--store", store.url]) == 2
    assert "has no project 'nope'; it has default" in capsys.readouterr().err
    assert store.pulls.list() == []


def test_annotations_become_labels_and_scores(
    store: Store, phoenix: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = shop(phoenix, "remarks", 4)
    pull(store, phoenix, "remarks", capsys=capsys)
    spans = [ids["span"] for ids in answers]
    annotate(
        phoenix,
        {"span_id": spans[0], "name": "hallucination", "annotator_kind": "HUMAN", "identifier": "ann",
         "result": {"label": "hallucinated", "explanation": "no banana is meant"}},
        {"span_id": answers[1]["root"], "name": "hallucination", "annotator_kind": "HUMAN", "identifier": "bob",
         "result": {"label": "factual"}},
        {"span_id": spans[2], "name": "quality", "annotator_kind": "HUMAN", "result": {"label": "bad"}},
        *({"span_id": span, "name": "ragas faithfulness", "annotator_kind": "CODE", "result": {"score": n / 4}}
          for n, span in enumerate(spans)),
        {"span_id": spans[3], "name": "toxicity", "annotator_kind": "LLM", "result": {"score": 0.5, "label": "low"}},
    )  # fmt: skip
    came = pull(store, phoenix, "remarks", capsys=capsys)
    assert (came["labels"], came["outside_samples"]) == (2, 2)
    assert came["scores"] == {"phoenix.ragas_faithfulness": 4, "phoenix.toxicity": 1}
    assert came["left_out"] == {"annotations 'quality' without a verdict": 1}
    labels = {label.trace_id: (label.labeller, label.verdict, label.note) for label in store.labels.export()}
    assert labels == {
        name(answers[0]): ("ann", "hallucinated", "no banana is meant"),
        name(answers[1]): ("bob", "clean", None),
    }
    pks = store.traces.keys_of([name(answers[3])])
    scores = {config.name: score.value for config, score in store.scores.of_trace(pks[name(answers[3])])}
    assert scores == {"phoenix.ragas_faithfulness": 0.75, "phoenix.toxicity": 0.5}
    ruled = pull(store, phoenix, "remarks", "--verdict", "quality:bad=hallucinated", capsys=capsys)
    assert (ruled["labels"], ruled["labels_unchanged"], ruled["scores"]) == (
        1, 2, {"phoenix.ragas_faithfulness": 0, "phoenix.toxicity": 0}
    )  # fmt: skip


def test_answers_from_elsewhere_and_those_that_phoenix_dropped_end_no_pull(
    store: Store, phoenix: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"{n:032x}-{n:016x}" for n in range(1, 121)]
    traces = [Trace(each, "an answer of another system", timestamp=datetime.now(UTC)) for each in names]
    store.traces.add([Record(1, trace) for trace in traces], labels_as=None, now=datetime.now(UTC))
    (ids,) = shop(phoenix, "second", 1)
    assert pull(store, phoenix, "second", "--name", "mine", capsys=capsys)["imported"] == 1
    store.origins.note("mine", "phoenix", names[:60])  # more than one request's, and Phoenix has none of them
    annotate(phoenix, {"span_id": ids["span"], "name": "toxicity", "annotator_kind": "LLM", "result": {"score": 0.5}})
    assert pull(store, phoenix, "second", "--name", "mine", capsys=capsys)["scores"] == {"phoenix.toxicity": 1}


def test_a_pull_that_is_killed_goes_on_and_has_all_answers_once(
    store: Store, phoenix: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = shop(phoenix, "killed", 30)
    command = [sys.executable, "-m", "calibrate", "pull", "phoenix", "--project", "killed", "--url", phoenix.url]
    process = subprocess.Popen([*command, "--store", store.url], cwd=ROOT, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not store.traces.count(TraceFilter(), limit=2) >= 2 and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (before,) = store.pulls.list()
    assert not before.finished
    assert 2 <= store.traces.count(TraceFilter()) < 30
    limited = pull(store, phoenix, "killed", "--limit", "3", capsys=capsys)
    assert (limited["imported"], limited["limited"]) == (3, True)
    pull(store, phoenix, "killed", capsys=capsys)
    assert {name(ids) for ids in answers} == {each for chunk in store.traces.ids(TraceFilter()) for each in chunk}


def test_verdicts_go_back_once_and_are_no_scores_of_others(
    store: Store, phoenix: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    file = publish(store, 0.5)
    answers = shop(phoenix, "back", 4)
    pull(store, phoenix, "back", capsys=capsys)
    os.environ["PHOENIX_ENDPOINT"] = phoenix.url
    try:
        command = ["watch", "--once", "--since", "all", "--annotate", "phoenix", "--store", store.url, "--json"]
        capsys.readouterr()
        assert cli.main(command) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["decided"] == FEW + 4
        assert document["annotated"] == {"phoenix": {"written": 4, "waiting": 0, "given_up": 0, "problem": None}}
        first = annotations_of(phoenix, "back", [ids["span"] for ids in answers])
        assert cli.main(command) == 0
        notes = []
        for ids in answers:  # as after a kill between the writing and its mark in the outbox
            (decision,) = store.decisions.of(store.traces.keys_of([name(ids)])[name(ids)])
            notes.append(compose(name(ids), decision, file))
        assert open_annotator("phoenix").annotate([note for note in notes if note]) == {}
    finally:
        del os.environ["PHOENIX_ENDPOINT"]
    second = annotations_of(phoenix, "back", [ids["span"] for ids in answers])
    assert [each["id"] for each in second] == [each["id"] for each in first]
    ((detector, entry),) = file.detectors.items()
    for ids in answers:
        pk = store.traces.keys_of([name(ids)])[name(ids)]
        (decision,) = store.decisions.of(pk)
        score, verdict = [each for each in second if each["span_id"] == ids["span"]]
        assert (score["name"], score["annotator_kind"]) == (f"touchstone.{detector}", "CODE")
        assert score["identifier"] == f"touchstone-v{file.version}"
        assert score["result"]["score"] == decision.scores[detector]
        assert score["result"]["label"] == ("flagged" if decision.flags else "not_flagged")
        assert score["metadata"]["threshold"] == entry.threshold
        assert (verdict["name"], verdict["result"]["label"]) == ("touchstone.verdict", decision.verdict)
    assert {each["result"]["label"] for each in second} >= {"flagged", "not_flagged"}
    came = pull(store, phoenix, "back", capsys=capsys)
    assert (came["scores"], came["labels"], came["left_out"]) == ({}, 0, {"scores by Touchstone": 8})
