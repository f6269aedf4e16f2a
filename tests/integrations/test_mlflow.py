"""A team's traces in a real MLflow come into the store, assessments too, and verdicts go back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from calibrate import cli
from calibrate.ingest.systems import open_annotator
from calibrate.types import Source, TraceFilter
from calibrate.workflow.watching.annotating import compose
from db import Store
from tests.integrations.servers import Server
from tests.workflow.watching.test_watch import FEW, publish

client = pytest.importorskip("mlflow")
pytestmark = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def _server(mlflow: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow.url)
    client.set_tracking_uri(mlflow.url)


def pull(store: Store, experiment: str, *options: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.main(["pull", "mlflow", "--project", experiment, "--store", store.url, "--json", *options]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def by_number(store: Store) -> dict[int, Any]:
    pks = store.traces.keys_of(each for chunk in store.traces.ids(TraceFilter()) for each in chunk).values()
    traces = [trace for trace in store.traces.load(sorted(pks)) if (trace.question or "").startswith("When does")]
    return {int((trace.question or "").split()[3]): trace for trace in traces}


def test_answers_and_assessments_come_in(store: Store, mlflow: Server, capsys: pytest.CaptureFixture[str]) -> None:
    ids = mlflow.run("mlflow_shop.py", "shop", "6").split()
    assert pull(store, "shop", "--limit", "4", capsys=capsys)["imported"] == 4
    assert pull(store, "shop", capsys=capsys)["imported"] == 2
    traces = by_number(store)
    assert len(traces) == 6
    for n, name in enumerate(ids):
        trace = traces[n]
        assert trace.id.startswith(name.removeprefix("tr-"))
        assert trace.answer == ("parcels leave our warehouse before noon" if n % 2 else f"bananas are yellow {n}")
        assert (trace.model, trace.question) == ("small-1", f"When does parcel {n} leave?")
        assert trace.sources == (Source("1", "parcels leave our warehouse before noon", "handbook", 0.75),)
        info = client.MlflowClient(mlflow.url).get_trace(name, display=False).info
        assert 0 <= trace.timestamp.timestamp() * 1000 - info.request_time < 60_000
    sources = client.entities.AssessmentSource
    span = traces[0].id.partition("-")[2]
    client.log_feedback(
        trace_id=ids[0], span_id=span, name="hallucination", value=True, rationale="no banana is meant",
        source=sources("HUMAN", "ann@shop"),
    )  # fmt: skip
    client.log_feedback(trace_id=ids[1], name="verdict", value="clean", source=sources("HUMAN", "bob"))
    client.log_feedback(trace_id=ids[1], name="faithfulness", value=0.25, source=sources("LLM_JUDGE", "judge"))
    client.log_feedback(trace_id=ids[2], name="length", value=3, source=sources("CODE", "len"))
    client.log_expectation(trace_id=ids[3], name="expected", value="noon", source=sources("HUMAN", "ann"))
    came = pull(store, "shop", capsys=capsys)
    assert (came["labels"], came["outside_samples"]) == (2, 2)
    assert came["scores"] == {"mlflow.faithfulness": 1, "mlflow.length": 1}
    labels = {label.trace_id: (label.labeller, label.verdict, label.note) for label in store.labels.export()}
    assert labels == {
        traces[0].id: ("ann@shop", "hallucinated", "no banana is meant"),
        traces[1].id: ("bob", "clean", None),
    }
    assert pull(store, "shop", "--restart", capsys=capsys)["duplicates"] == 6


def test_verdicts_go_back_once(store: Store, mlflow: Server, capsys: pytest.CaptureFixture[str]) -> None:
    file = publish(store, 0.5)
    ids = mlflow.run("mlflow_shop.py", "back", "3").split()
    pull(store, "back", capsys=capsys)
    command = ["watch", "--once", "--since", "all", "--annotate", "mlflow", "--store", store.url, "--json"]
    capsys.readouterr()
    assert cli.main(command) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["decided"] == FEW + 3
    assert document["annotated"] == {"mlflow": {"written": 3, "waiting": 0, "given_up": 0, "problem": None}}
    traces = by_number(store)
    notes = []
    for n in range(3):
        (decision,) = store.decisions.of(store.traces.keys_of([traces[n].id])[traces[n].id])
        notes.append(compose(traces[n].id, decision, file))
    assert open_annotator("mlflow").annotate([note for note in notes if note]) == {}
    ((detector, _),) = file.detectors.items()
    for n, name in enumerate(ids):
        (decision,) = store.decisions.of(store.traces.keys_of([traces[n].id])[traces[n].id])
        assessments = client.MlflowClient(mlflow.url).get_trace(name, display=False).info.assessments
        assert {each.name: each.feedback.value for each in assessments} == {
            f"touchstone.{detector}": decision.scores[detector], "touchstone.verdict": decision.verdict,
        }  # fmt: skip
        assert len(assessments) == 2
        assert {each.span_id for each in assessments} == {traces[n].id.partition("-")[2]}
        assert {each.source.source_id for each in assessments} == {f"touchstone-v{file.version}"}
    came = pull(store, "back", capsys=capsys)
    assert (came["scores"], came["labels"], came["left_out"]) == ({}, 0, {"scores by Touchstone": 6})


def test_an_experiment_that_is_not_there_is_named(
    store: Store, mlflow: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["pull", "mlflow", "--project", "nowhere", "--store", store.url]) == 2
    assert "has no experiment 'nowhere'; it has" in capsys.readouterr().err
