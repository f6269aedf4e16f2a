"""The processor in the real OpenTelemetry SDK: what it sends, when, and what it leaves alone."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, Context, get_value
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from calibrate.errors import BadInput, BadThresholds
from calibrate.ingest.spans.answers import answers_of
from calibrate.ingest.spans.record import SpanRecord
from calibrate.runtime import decide
from calibrate.runtime.otel import Counts, TouchstoneSpanProcessor
from calibrate.runtime.otel.conversion import record_of
from calibrate.runtime.otel.worker import OURS
from calibrate.thresholds import Sampling, write
from tests.runtime.otel_making import (
    FALSE,
    FILE,
    PASSAGE,
    TRUE,
    Program,
    chat,
    events,
    file_of,
    point_of,
    retrieval,
    scores,
)
from tests.thresholds.make import release

ROOT = Path(__file__).parents[2]


def test_an_answer_gets_one_result_with_scores_flags_and_version() -> None:
    program = Program()
    program.ask(FALSE)
    span = program.result()
    assert decide(FILE, scores(span)).flags == ("word_overlap",)
    said = dict(span.attributes or {})
    assert said["touchstone.flags"] == ("word_overlap",)
    assert (said["touchstone.verdict"], said["touchstone.tier"]) == ("REVIEW", "page")
    assert said["touchstone.thresholds.version"] == FILE.version
    assert said["touchstone.reasons"] == decide(FILE, scores(span)).reasons
    assert program.processor.counts() == Counts(offered=1, scored=1, dropped=0, failed=0, empty=0, waiting=0)


def test_the_result_is_a_child_of_the_llm_span_and_linked_to_it() -> None:
    program = Program()
    program.ask(TRUE)
    span = program.result()
    (llm,) = [one for one in program.exporter.get_finished_spans() if one.name == "chat"]
    assert span.parent is not None
    assert span.parent.span_id == llm.context.span_id == span.links[0].context.span_id
    assert span.context.trace_id == llm.context.trace_id
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "touchstone"
    assert (span.start_time or 0) <= (span.end_time or 0)
    assert (span.attributes or {})["touchstone.verdict"] == "ACCEPT"


def test_every_detector_is_an_event_and_says_why_it_has_no_score() -> None:
    file = file_of(word_overlap=(0.5, "below", "page"), token_logprob=(-1.0, "below", "signal"))
    logs = InMemoryLogRecordExporter()
    loggers = LoggerProvider(shutdown_on_exit=False)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    program = Program(file, logger_provider=loggers)
    program.ask(FALSE)
    span = program.result()
    value = scores(span)["word_overlap"]
    said = events(span)
    assert [one["gen_ai.evaluation.name"] for one in said] == ["token_logprob", "word_overlap"]
    assert said[0]["gen_ai.evaluation.score.label"] == "abstained"
    assert "gen_ai.evaluation.score.value" not in said[0]
    assert said[0]["gen_ai.evaluation.explanation"] == "no tokens"
    assert said[1] == {
        "gen_ai.evaluation.name": "word_overlap",
        "gen_ai.evaluation.score.value": value,
        "gen_ai.evaluation.score.label": "flagged",
        "gen_ai.evaluation.explanation": f"word_overlap {value:.4g} ≤ 0.5",
        "touchstone.thresholds.version": 2,
    }
    records = [one.log_record for one in logs.get_finished_logs()]
    assert [dict(one.attributes or {}) for one in records] == said
    assert span.parent is not None
    assert {one.event_name for one in records} == {"gen_ai.evaluation.result"}
    assert {one.span_id for one in records} == {span.parent.span_id}


def test_a_refusal_is_labelled_one_and_flags_nothing() -> None:
    program = Program()
    program.ask("I'm sorry, but I cannot answer that from the sources.")
    (event,) = events(program.result())
    assert event["gen_ai.evaluation.score.label"] == "refusal"


class Recipe(SpanProcessor):
    """The published way: score a span when it ends and send the result as a span. It is stopped at 50."""

    def __init__(self, provider: TracerProvider) -> None:
        self.tracer, self.sent = provider.get_tracer("recipe"), 0

    def on_end(self, span: ReadableSpan) -> None:
        if self.sent < 50:
            self.sent += 1
            self.tracer.start_span("detector.result", attributes=dict(span.attributes or {})).end()


def test_the_plain_recipe_answers_itself_for_ever_and_ours_does_not() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    recipe = Recipe(provider)
    provider.add_span_processor(recipe)
    provider.get_tracer("app").start_span("chat", attributes=chat()).end()
    assert recipe.sent == 50

    program = Program()
    program.ask(TRUE)
    for _ in range(3):  # a second and third round would show an answer to our own result
        assert len(program.results()) == 1


def test_a_rule_that_takes_everything_does_not_take_our_results() -> None:
    program = Program(is_llm=lambda span: True)
    program.ask(TRUE)
    for _ in range(3):
        assert len(program.results()) == 1
    assert program.processor.counts() == Counts(offered=3, scored=1, dropped=0, failed=0, empty=2, waiting=0)
    program.provider.get_tracer("touchstone").start_span("late result", attributes=chat()).end()
    assert program.processor.counts().offered == 3


def test_what_a_detector_traces_while_it_scores_is_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge behind an instrumented client makes LLM spans of its own."""
    program = Program()
    seen: list[object] = []

    def judge(answers: Any, inner: Any = program.processor._judge) -> None:
        seen.append(get_value(_SUPPRESS_INSTRUMENTATION_KEY))
        program.span(**chat("a judge's answer"))
        inner(answers)

    monkeypatch.setattr(program.processor._worker, "_judge", judge)
    program.ask(TRUE)
    assert len(program.results()) == 1
    assert program.processor.counts().offered == 1
    assert seen == [True]  # instrumentation that asks is told to keep quiet
    token = OURS.set(True)
    program.span(**chat())
    OURS.reset(token)
    assert program.processor.counts().offered == 1


def test_a_trace_knows_its_service_as_one_that_came_by_file_or_receiver_does() -> None:
    provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
    span = provider.get_tracer("program").start_span("chat", attributes=chat())
    span.end()
    assert isinstance(span, ReadableSpan)
    (answer,) = answers_of([record_of(span)])
    assert answer.trace.attributes == {"service.name": "shop"}


def test_several_answers_of_a_trace_have_a_result_each() -> None:
    program = Program()
    with program.tracer.start_as_current_span("root"):
        for answer in (TRUE, FALSE):
            with program.tracer.start_as_current_span("retrieve", attributes=retrieval(PASSAGE)):
                pass
            program.tracer.start_span("chat", attributes=chat(answer)).end()
    verdicts = [(span.attributes or {})["touchstone.verdict"] for span in program.results()]
    assert verdicts == ["ACCEPT", "REVIEW"]


def test_the_root_of_a_distributed_trace_is_where_it_enters_this_process() -> None:
    remote = NonRecordingSpan(SpanContext(7, 9, is_remote=True, trace_flags=TraceFlags(1)))
    program = Program()
    with program.tracer.start_as_current_span("serve", context=trace.set_span_in_context(remote, Context())):
        program.tracer.start_span("retrieve", attributes=retrieval(PASSAGE)).end()
        program.tracer.start_span("chat", attributes=chat(FALSE)).end()
    span = program.result()
    assert span.context.trace_id == 7
    assert scores(span)["word_overlap"] < 0.5


def test_spans_without_an_answer_are_left_alone_and_empty_answers_counted() -> None:
    program = Program()
    program.span(**{"http.request.method": "GET"})
    program.span(**chat() | {"gen_ai.operation.name": "embeddings"})
    program.span(**{"gen_ai.operation.name": "chat", "gen_ai.response.model": "m"})  # content is not captured
    assert program.results() == []
    assert program.processor.counts() == Counts(offered=1, scored=0, dropped=0, failed=0, empty=1, waiting=0)


def test_an_answer_that_nothing_could_score_is_marked_counted_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    program = Program()
    for _ in range(2):
        program.span(**chat(FALSE))  # without any source
    first, second = program.results()
    for span in (first, second):
        said = dict(span.attributes or {})
        assert (said["touchstone.verdict"], said["touchstone.unscored"], said["touchstone.tier"]) == (
            "REVIEW",
            True,
            "off",
        )
        assert said["touchstone.reasons"] == ("nothing was scored: no context (word_overlap)",)
        assert [event["gen_ai.evaluation.score.label"] for event in events(span)] == ["abstained", "unscored"]
        assert events(span)[1]["gen_ai.evaluation.name"] == "touchstone"
    program.ask(TRUE)
    assert (program.results()[-1].attributes or {})["touchstone.unscored"] is False
    counts = program.processor.counts()
    assert counts == Counts(offered=3, scored=1, dropped=0, failed=0, empty=0, waiting=0, unscored=2)
    outcomes = {attributes["outcome"]: point.value for attributes, point in program.metrics()["touchstone.answers"]}
    assert (outcomes["scored"], outcomes["unscored"]) == (1, 2)
    assert len([line for line in caplog.messages if line.startswith("an answer was not scored: no context")]) == 1


@pytest.mark.parametrize(("on_missing", "verdict"), [("accept", "ACCEPT"), ("reject", "REJECT")])
def test_the_program_says_what_becomes_of_an_unscored_answer(on_missing: str, verdict: str) -> None:
    program = Program(on_missing=on_missing)
    program.span(**chat(FALSE))
    assert (program.result().attributes or {})["touchstone.verdict"] == verdict


def test_that_answers_come_without_text_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        program = Program()
        for _ in range(2):
            program.span(**{"gen_ai.operation.name": "chat", "gen_ai.response.model": "m"})
        assert program.results() == []
        assert program.processor.counts().empty == 2
    (line,) = [line for line in caplog.messages if line.startswith("an answer was empty")]
    assert "does not capture content" in line


def test_a_detector_is_sampled_as_the_file_says() -> None:
    sampling = Sampling(1.0, {"stakes": "high"})
    program = Program(release({"word_overlap": point_of("word_overlap", 0.5, "below", "page", sampling=sampling)}))
    program.ask(FALSE)
    program.ask(FALSE, stakes="high")
    low, high = program.results()
    assert scores(low) == {}
    assert (low.attributes or {})["touchstone.verdict"] == "ACCEPT"
    assert (low.attributes or {})["touchstone.skipped"] == ("word_overlap",)
    assert (high.attributes or {})["touchstone.skipped"] == ()
    assert (high.attributes or {})["touchstone.verdict"] == "REVIEW"


def test_metrics_count_answers_flags_and_time() -> None:
    program = Program()
    for answer in (TRUE, FALSE, FALSE):
        program.ask(answer)
    program.results()
    found = program.metrics()
    assert [point.value for _, point in found["touchstone.queue.depth"]] == [0]
    outcomes = {attributes["outcome"]: point.value for attributes, point in found["touchstone.answers"]}
    assert outcomes == {"scored": 3, "unscored": 0, "nested": 0, "dropped": 0, "failed": 0, "empty": 0}
    ((attributes, point),) = found["touchstone.flags"]
    assert (attributes, point.value) == ({"detector": "word_overlap", "tier": "page"}, 2)
    ((attributes, point),) = found["touchstone.detector.duration"]
    assert (attributes, point.count) == ({"detector": "word_overlap", "status": "scored"}, 3)
    assert 0 < point.sum < 10


def test_a_new_release_takes_effect_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.json"
    write(FILE, path)
    program = Program(path, reload_every=3600)
    program.ask(FALSE)
    assert (program.result().attributes or {})["touchstone.verdict"] == "REVIEW"
    write(replace(file_of(word_overlap=(-1.0, "below", "page")), version=3, replaces=2), path)
    program.processor._thresholds.refresh()
    program.ask(FALSE)
    last = dict(program.results()[-1].attributes or {})
    assert (last["touchstone.verdict"], last["touchstone.thresholds.version"]) == ("ACCEPT", 3)


def test_the_global_provider_is_used_unless_one_is_given() -> None:
    """In a process of its own: the global provider can be set once."""
    code = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from calibrate.runtime.otel import TouchstoneSpanProcessor
from tests.runtime.otel_making import FILE, chat
provider, exporter = TracerProvider(), InMemorySpanExporter()
trace.set_tracer_provider(provider)
provider.add_span_processor(TouchstoneSpanProcessor(FILE))
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.get_tracer("app").start_span("chat", attributes=chat()).end()
provider.force_flush()
print(*sorted(span.name for span in exporter.get_finished_spans()))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["chat", "touchstone.detector.result"]


def test_without_a_provider_it_says_that_results_go_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    processor = TouchstoneSpanProcessor(FILE)
    provider.add_span_processor(processor)
    with caplog.at_level(logging.WARNING, "touchstone"):
        for _ in range(2):
            provider.get_tracer("app").start_span("chat", attributes=chat()).end()
            assert processor.force_flush()
    assert processor.counts().unscored == 2  # their spans have no sources
    assert len([one for one in caplog.messages if "set_tracer_provider" in one]) == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_queue": 0}, "max_queue"),
        ({"gather_seconds": -1}, "gather_seconds"),
        ({"cpu_share": 0}, "cpu_share"),
        ({"detectors": "word_overlap"}, "a list of names"),
        ({"attributes": {"anwser": "x"}}, "no field anwser"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_at_once(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        TouchstoneSpanProcessor(FILE, **settings)


def test_a_missing_file_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadThresholds, match="nothing\\.json"):
        TouchstoneSpanProcessor(tmp_path / "nothing.json")


def test_without_the_sdk_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.sdk.trace'] = None\n"
        "import calibrate.runtime\n"
        "try: import calibrate.runtime.otel\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "pip install opentelemetry-sdk" in done.stdout


def test_the_light_runtime_does_not_load_opentelemetry() -> None:
    code = "import sys, calibrate.runtime; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_processor_that_is_gone_leaves_nothing_behind() -> None:
    import gc
    import weakref

    program = Program()
    program.ask(TRUE)
    program.results()
    program.processor.shutdown()
    left = weakref.ref(program.processor)
    del program
    gc.collect()
    assert left() is None


def test_two_processors_of_one_provider_do_not_answer_each_other() -> None:
    program = Program()
    other = TouchstoneSpanProcessor(FILE, tracer_provider=program.provider)
    program.provider.add_span_processor(other)
    exporter = InMemorySpanExporter()
    program.provider.add_span_processor(SimpleSpanProcessor(exporter))
    program.ask(TRUE)
    assert len(program.results()) == 2
    assert len(program.results()) == 2
    assert other.counts().scored == program.processor.counts().scored == 1


def test_a_program_may_read_its_spans_itself() -> None:
    def read(span: SpanRecord) -> dict[str, object]:
        return {"answer": span.attributes["reply"], "sources": [PASSAGE]} if "reply" in span.attributes else {}

    program = Program(read=read)
    program.span(reply=TRUE)
    program.span(other="x")
    assert scores(program.result()) == {"word_overlap": 1.0}
    assert program.processor.counts() == Counts(offered=1, scored=1, dropped=0, failed=0, empty=0, waiting=0)
    with pytest.raises(BadInput, match="read is"):
        Program(read="reply")


def test_what_a_tool_returned_is_a_source_on_request() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": PASSAGE}
    for wanted in (True, False):
        program = Program(tool_results=wanted)
        with program.tracer.start_as_current_span("answer"):
            program.tracer.start_span("search", attributes=tool).end()
            program.tracer.start_span("chat", attributes=chat(TRUE)).end()
        assert scores(program.result()) == ({"word_overlap": 1.0} if wanted else {})
