"""One answer where two instrumentors trace one call: by hand-made spans, and by two that people use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import _logs
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.trace import format_span_id, format_trace_id

from calibrate.runtime import Alerts
from calibrate.runtime.otel.intake import Counts
from tests.runtime.otel_making import FALSE, PASSAGE, TRUE, Program, chat, events, retrieval, scores
from tests.runtime.serving import serving

ROOT = Path(__file__).parents[2]


def nested(program: Program, outer: dict[str, Any], inner: dict[str, Any]) -> tuple[Any, Any]:
    """A trace with a retriever's span, and an LLM span within another one."""
    other = program.provider.get_tracer("another")
    with program.tracer.start_as_current_span("answer"):
        with program.tracer.start_as_current_span("retrieve", attributes=retrieval(PASSAGE)):
            pass
        with (
            program.tracer.start_as_current_span("outer", attributes=outer) as first,
            other.start_as_current_span("inner", attributes=inner) as second,
        ):
            pass
    return first.get_span_context(), second.get_span_context()


def test_the_inner_span_is_scored_and_takes_what_it_lacks_from_the_outer() -> None:
    program = Program()
    inner = {"openinference.span.kind": "LLM", "output.value": TRUE + " "}
    _, context = nested(program, chat() | {"gen_ai.response.id": "r-1", "tenant": "a"}, inner)
    result = program.result()
    assert result.parent is not None
    assert result.parent.span_id == context.span_id
    assert scores(result) == {"word_overlap": 1.0}
    assert dict(result.attributes or {})["gen_ai.response.id"] == "r-1"
    assert [event["gen_ai.response.id"] for event in events(result)] == ["r-1"]
    assert program.processor.counts() == Counts(offered=2, scored=1, dropped=0, failed=0, empty=0, waiting=0, nested=1)
    outcomes = {attributes["outcome"]: point.value for attributes, point in program.metrics()["touchstone.answers"]}
    assert (outcomes["scored"], outcomes["nested"]) == (1, 1)


def test_what_the_program_declared_wins() -> None:
    program = Program()
    context, _ = nested(program, {"touchstone.answer": TRUE, "touchstone.trace_id": "mine"}, chat())
    result = program.result()
    assert result.parent is not None
    assert result.parent.span_id == context.span_id
    assert dict(result.attributes or {})["touchstone.trace_id"] == "mine"


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        (chat(TRUE), chat(FALSE)),
        (chat() | {"gen_ai.response.id": "r-1"}, chat() | {"gen_ai.response.id": "r-2"}),
    ],
    ids=["another text", "another id"],
)
def test_two_calls_are_two_answers(outer: dict[str, Any], inner: dict[str, Any]) -> None:
    program = Program()
    nested(program, outer, inner)
    assert len(program.results()) == 2
    assert program.processor.counts().nested == 0


def test_equal_answers_of_one_instrumentor_at_once_are_two() -> None:
    """Two calls at once say the same: one lies within the other in time, but neither made the other."""
    program = Program()
    with program.tracer.start_as_current_span("answer"):
        first = program.tracer.start_span("chat", attributes=chat())
        program.tracer.start_span("chat", attributes=chat()).end()
        first.end()
    assert len(program.results()) == 2


def test_spans_of_two_instrumentors_that_do_not_know_of_each_other_are_joined_by_time() -> None:
    program = Program()
    other = program.provider.get_tracer("callbacks")
    with program.tracer.start_as_current_span("answer"):
        first = other.start_span("ChatModel", attributes=chat())
        program.tracer.start_span("chat", attributes=chat()).end()
        first.end()
    assert len(program.results()) == 1


def test_of_three_one_is_left() -> None:
    program = Program()
    with (
        program.tracer.start_as_current_span("a", attributes=chat()),
        program.tracer.start_as_current_span("b", attributes=chat()),
        program.tracer.start_as_current_span("c", attributes=chat()),
    ):
        pass
    assert len(program.results()) == 1
    assert program.processor.counts().nested == 2


class _Kept:
    """An exporter that keeps log records, by the name that this SDK gives the class."""

    def __init__(self) -> None:
        from opentelemetry.sdk._logs import export

        self.exporter = getattr(export, "InMemoryLogRecordExporter", None) or export.InMemoryLogExporter()
        self.exporter = self.exporter() if isinstance(self.exporter, type) else self.exporter
        self.provider = LoggerProvider(shutdown_on_exit=False)
        self.provider.add_log_record_processor(SimpleLogRecordProcessor(self.exporter))

    def records(self) -> list[Any]:
        return [data.log_record for data in self.exporter.get_finished_logs()]


def test_the_event_goes_to_the_global_logger_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _Kept()
    monkeypatch.setattr(_logs._internal, "_LOGGER_PROVIDER", kept.provider)
    program = Program()
    program.ask(TRUE, **{"gen_ai.response.id": "r-9"})
    program.results()
    (record,) = kept.records()
    assert record.event_name == "gen_ai.evaluation.result"
    assert record.attributes["gen_ai.response.id"] == "r-9"
    silent = Program(logger_provider=_logs.NoOpLoggerProvider())
    silent.ask()
    silent.results()
    assert len(kept.records()) == 1


@pytest.mark.parametrize("declared", [{}, {"touchstone.trace_id": "mine"}], ids=["by its span", "by its own id"])
def test_a_link_in_an_alert_resolves_in_a_tracing_backend(declared: dict[str, str]) -> None:
    with serving(lambda asked: (200, {}, b"")) as hook:
        alerts = Alerts(hook.url, group_seconds=0, trace_url="http://jaeger/trace/{otel_trace}?span={otel_span}")
        program = Program(alerts=alerts)
        with program.tracer.start_as_current_span("answer"):
            with program.tracer.start_as_current_span("retrieve", attributes=retrieval(PASSAGE)):
                pass
            with program.tracer.start_as_current_span("chat", attributes=chat(FALSE) | declared) as span:
                context = span.get_span_context()
        program.results()
        assert alerts.flush()
        alerts.close()
        trace_id, span_id = format_trace_id(context.trace_id), format_span_id(context.span_id)
        assert f"<http://jaeger/trace/{trace_id}?span={span_id}|" in hook.asked[0].body.decode()


REAL = """
import os, sys
os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
import openai
from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInference
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as GenAI
from tests.backends.chat_stub import good, stubbed
from tests.runtime.otel_making import Program, retrieval, scores
program = Program()
for letter in sys.argv[1]:
    (OpenInference if letter == "o" else GenAI)().instrument(tracer_provider=program.provider)
with stubbed(good) as stub, program.tracer.start_as_current_span("answer"):
    with program.tracer.start_as_current_span("retrieve", attributes=retrieval("Oxygen was discovered in 1774.")):
        pass
    client = openai.OpenAI(base_url=stub.url, api_key="none")
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Oxygen was discovered in 1774."}])
(result,) = program.results()
attributes = dict(result.attributes)
print(scores(result), attributes.get("gen_ai.response.id"), program.processor.counts().nested)
"""


@pytest.mark.parametrize(
    ("order", "response_id", "joined"), [("o", None, 0), ("g", "1", 0), ("og", "1", 1), ("go", "1", 1)]
)
def test_two_real_instrumentations_of_one_call_make_one_answer(
    order: str, response_id: str | None, joined: int
) -> None:
    pytest.importorskip("openinference.instrumentation.openai")
    pytest.importorskip("opentelemetry.instrumentation.genai.openai")
    done = subprocess.run([sys.executable, "-c", REAL, order], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split("\n")[0] == f"{{'word_overlap': 1.0}} {response_id} {joined}"
