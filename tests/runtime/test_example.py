"""The example program, end to end: a real model, real spans, the store and what it says of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from openai import OpenAI
from opentelemetry.sdk.trace import ReadableSpan
from streamlit.testing.v1 import AppTest

from calibrate import registry
from calibrate.cli import main
from calibrate.runtime import decide, load
from db import open_store
from examples.rag.app import QUESTIONS, run
from tests.llm import Llm
from tests.runtime.otel_making import RESULT, events, scores

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "examples" / "rag" / "thresholds.json"

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a release, made as a team makes it."""
    folder = tmp_path_factory.mktemp("library")
    url = f"sqlite:///{folder}/touchstone.db"
    for line in (
        "demo --traces-only",
        "detect rouge_l token_logprob token_overlap --labelled",
        *(f"choose {name} --save --reason example" for name in ("rouge_l", "token_logprob", "token_overlap")),
        f"release --tier rouge_l=page --note example --out {folder}/thresholds.json",
    ):
        command(url, line)
    return url


def command(url: str, line: str) -> None:
    assert main([*line.split(), "--store", url]) == 0


@pytest.fixture(scope="module")
def folder(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///")).parent


@pytest.fixture(scope="module")
def spans(llm: Llm, folder: Path) -> Sequence[ReadableSpan]:
    """What the example's collector got, deciding by the team's release."""
    client = OpenAI(base_url=llm.url, api_key="none", max_retries=0)
    return run(client, llm.model, thresholds=folder / "thresholds.json", traces=folder / "traces.jsonl")


def results(spans: Sequence[ReadableSpan]) -> dict[str, ReadableSpan]:
    """By trace id."""
    return {str((span.attributes or {})["touchstone.trace_id"]): span for span in spans if span.name == RESULT}


def test_every_answer_is_scored_once_and_its_flags_are_what_decide_says(
    spans: Sequence[ReadableSpan], folder: Path
) -> None:
    file = load(folder / "thresholds.json")
    found = results(spans)
    assert len(found) == len([span for span in spans if span.name == RESULT]) == len(QUESTIONS)
    assert sum(span.name.startswith("chat ") for span in spans) == len(QUESTIONS)
    for span in found.values():
        said, decision = dict(span.attributes or {}), decide(file, scores(span))
        assert said["touchstone.flags"] == decision.flags
        assert said["touchstone.reasons"] == decision.reasons
        assert (said["touchstone.verdict"], said["touchstone.tier"]) == (decision.verdict, decision.tier)
        labels = {one["gen_ai.evaluation.name"]: one["gen_ai.evaluation.score.label"] for one in events(span)}
        assert tuple(name for name, label in labels.items() if label == "flagged") == decision.flags
    # The sources came from another span and the log-probabilities from the endpoint: every detector had its say.
    assert {name for span in found.values() for name in scores(span)} == set(file.detectors)
    assert any((span.attributes or {})["touchstone.flags"] for span in found.values())


def test_the_store_decides_as_the_spans_do_and_the_workbench_shows_it(
    spans: Sequence[ReadableSpan], folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command(url, f"import {folder}/traces.jsonl")
    command(url, "watch --once")
    store = open_store(url)
    for trace_id, span in results(spans).items():
        pk = store.traces.find(trace_id)
        assert pk is not None
        (decided,) = store.decisions.of(pk)
        said = dict(span.attributes or {})
        assert (decided.flags, decided.reasons) == (said["touchstone.flags"], said["touchstone.reasons"])
        assert (decided.verdict, decided.version) == (said["touchstone.verdict"], said["touchstone.thresholds.version"])
        assert {name: value for name, value in decided.scores.items() if value is not None} == scores(span)
    store.close()

    monkeypatch.setenv("TOUCHSTONE_STORE", url)
    flagged = next(span for span in results(spans).values() if (span.attributes or {})["touchstone.flags"])
    page = AppTest.from_file(str(ROOT / "pages" / "shell" / "workbench.py"), default_timeout=60).run()
    page.query_params["trace"] = str((flagged.attributes or {})["touchstone.trace_id"])
    page.switch_page("../traces/browse_page.py").run()
    assert not page.exception
    shown = [text.value for text in page.text]
    for reason in (flagged.attributes or {})["touchstone.reasons"]:
        assert reason in shown


def test_the_thresholds_that_come_with_the_example_fit_the_detectors_of_today() -> None:
    """Where a detector's version has moved on, its threshold is void: make the file anew, as the README says."""
    file = load(SHIPPED)
    assert {name: registry.get(name).version for name in file.detectors} == {
        name: entry.version for name, entry in file.detectors.items()
    }
