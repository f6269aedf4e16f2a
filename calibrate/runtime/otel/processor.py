"""A span processor for the OpenTelemetry SDK that scores LLM answers as they are traced.

    provider.add_span_processor(TouchstoneSpanProcessor("thresholds.json"))

The program's threads only append spans to a queue. One more thread joins the spans of each answer, runs the detectors
of the thresholds file, decides, and sends the result as a span, events and metrics.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING

from opentelemetry import _logs, metrics, trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

import calibrate
from calibrate.errors import BadInput
from calibrate.ingest.spans.answers import Answer
from calibrate.ingest.spans.reader import Read, Reader
from calibrate.runtime.alerts import Alerts
from calibrate.runtime.decision import Decision, OnMissing
from calibrate.runtime.guard import DEADLINE
from calibrate.runtime.live import Live, current, load
from calibrate.runtime.otel.emit import SCOPE, context_of, emit
from calibrate.runtime.otel.hand_over import HandOver, HandOverCounts
from calibrate.runtime.otel.intake import Counts, Intake
from calibrate.runtime.otel.metrics import Metrics
from calibrate.runtime.otel.worker import OURS, Worker
from calibrate.runtime.scoring import Scored, Scorer
from calibrate.runtime.tracelog.records import Redact
from calibrate.runtime.validation import check_number, describe_type
from calibrate.thresholds.model import ThresholdsFile

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

IsLlm = Callable[[ReadableSpan], bool]

_NOWHERE = "no tracer provider is set: call opentelemetry.trace.set_tracer_provider, or give tracer_provider"


class TouchstoneSpanProcessor(SpanProcessor):
    """Score the answers that LLM spans hold.

    Parameters
    ----------
    thresholds : str, path, ThresholdsFile or Live
        Path or URL of the thresholds file, or what `load` returned.
    detectors : sequence of str, optional
        Run only these detectors of the file. The others' scores are missing.
    alerts : Alerts, optional
        Report flagged answers to a webhook, besides telemetry.
    is_llm : callable, optional
        Tells whether a span holds an answer, in place of the conventions. Runs where spans end: keep it short.
    attributes : mapping of str to str, optional
        Field ("answer", "question", "sources", …) to the attribute that holds it, for spans of no convention.
    read : callable, optional
        Returns fields ("answer", "question", "sources", …) that it reads from a `SpanRecord` itself; they outrank all
        else. Runs beside the program, or where spans end if many wait: keep it short.
    tool_results : bool
        Take what tools returned to the model as sources.
    reload_every : float
        Seconds between two looks for a newer thresholds file, above 0.
    gather_seconds : float
        Seconds that a trace waits, after its last span, for its root to end. 0 or more.
    max_queue : int
        Most spans that may wait, 1 or more, and most answers to hand over. Further ones are dropped and counted.
    cpu_share : float
        Share of one core that scoring may use, above 0 and up to 1.
    shutdown_seconds : float
        Seconds that `shutdown` may go on scoring what waits. 0 or more.
    on_missing : {"review", "accept", "reject"}
        The verdict on an answer of which nothing could be scored.
    deadline : float or None
        Seconds that an answer may take to be scored, above 0; answers that are scored together share the sum. What is
        not scored by then is missing. None waits for as long as the detectors take.
    hand_over : str, optional
        Address of the workbench's receiver, to which a share of the decided answers is sent:
        "http://workbench:4318". TOUCHSTONE_RECEIVE_TOKEN is its token.
    share : float
        The share of the traces that is handed over, above 0 and up to 1. A trace's id decides.
    redact : str or callable, optional
        What is replaced in what is handed over: names of kinds ("email,phone,card,key"), or a function that takes a
        record and returns another, or None to leave it out.
    tracer_provider, meter_provider, logger_provider : optional
        Where results go; by default the global ones. A `NoOpLoggerProvider` keeps the events from being sent as log
        records as well.

    Raises
    ------
    BadThresholds
        If the file is missing or must not be used.
    BadInput
        For an impossible setting. Once constructed, nothing here raises.
    """

    def __init__(
        self,
        thresholds: str | os.PathLike[str] | ThresholdsFile | Live,
        *,
        detectors: Sequence[str] | None = None,
        alerts: Alerts | None = None,
        is_llm: IsLlm | None = None,
        attributes: Mapping[str, str] | None = None,
        read: Read | None = None,
        tool_results: bool = False,
        reload_every: float = 30.0,
        gather_seconds: float = 60.0,
        max_queue: int = 2048,
        cpu_share: float = 0.5,
        shutdown_seconds: float = 5.0,
        on_missing: OnMissing = "review",
        deadline: float | None = DEADLINE,
        hand_over: str | None = None,
        share: float = 0.1,
        redact: str | Redact | None = None,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
    ) -> None:
        check_number("gather_seconds", gather_seconds, "wait")
        check_number("max_queue", max_queue, "count")
        check_number("cpu_share", cpu_share, "share")
        check_number("shutdown_seconds", shutdown_seconds, "wait")
        if deadline is not None:
            check_number("deadline", deadline, "pause")
        if is_llm is not None and not callable(is_llm):
            raise BadInput(f"is_llm is {describe_type(is_llm)}; give a function of a span")
        if read is not None and not callable(read):
            raise BadInput(f"read is {describe_type(read)}; give a function of a SpanRecord")
        if alerts is not None and not isinstance(alerts, Alerts):
            raise BadInput(f"alerts is {describe_type(alerts)}; give Alerts(url)")
        if not isinstance(thresholds, (ThresholdsFile, Live)):
            thresholds = load(thresholds, reload_every=reload_every)
        self._thresholds, self._detectors, self._alerts = thresholds, detectors, alerts
        self._on_missing, self._deadline, self._is_llm = on_missing, deadline, is_llm
        try:
            self._reader = Reader(None if is_llm is None else _never, attributes, read, tool_results)
        except ValueError as error:
            raise BadInput(f"attributes: {error}") from error
        self._settings = {"gather_seconds": gather_seconds, "most": max_queue, "cpu_share": cpu_share}
        self._shutdown_seconds = shutdown_seconds
        self._tracers, self._loggers = tracer_provider, logger_provider
        if hand_over is None and redact is not None:
            raise BadInput("redact is for what is handed over; give hand_over too")
        self._hand_over = (
            None if hand_over is None else HandOver(hand_over, share=share, redact=redact, max_queue=max_queue)
        )
        self._reset()
        self._scorer.prepare()
        meter = metrics.get_meter(SCOPE, calibrate.__version__, meter_provider)
        me = weakref.ref(self)
        self._metrics = Metrics(meter, lambda: _intake(me()))
        _alive.add(self)

    def _reset(self) -> None:
        """Start with an empty queue. The first span starts the thread.

        A forked child calls this again: the parent scores what it has, and locks that its threads held are left behind.
        """
        self._ours: set[int] = set()  # the spans that began while scoring and have not ended
        self._scorer = Scorer(self._thresholds, detectors=self._detectors, on_missing=self._on_missing)
        scorer = self._scorer
        self._worker = Worker(
            self._reader,
            self._judge,
            seconds_beside=lambda: scorer.seconds_beside,
            **self._settings,  # type: ignore[arg-type]
        )

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Remember spans that start while scoring: scoring those too would never end."""
        if OURS.get():
            self._ours.add(span.get_span_context().span_id)

    def on_end(self, span: ReadableSpan) -> None:
        """Queue the span. Never waits, never raises."""
        try:
            if self._ours and self._is_ours(span):
                return
            rule = self._is_llm
            self._worker.intake.offer(span, rule is not None and self._picks(rule, span))
        except Exception as error:
            self._worker.report_once("taking a span in", error)

    def _is_ours(self, span: ReadableSpan) -> bool:
        """Tell whether the span began while scoring.

        Where it ends says nothing: a span of the program may end there too, with its last reference, and a detector's
        span in another thread.
        """
        context = span.get_span_context()
        if context is None or context.span_id not in self._ours:
            return False
        self._ours.discard(context.span_id)
        return True

    def _picks(self, rule: IsLlm, span: ReadableSpan) -> bool:
        try:
            return bool(rule(span))
        except Exception as error:  # the span may still have sources, or be the root
            self._worker.report_once("is_llm, and a span for which it raises holds no answer", error)
            return False

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Score all spans that have ended, without waiting for their roots.

        Parameters
        ----------
        timeout_millis : int
            Milliseconds to wait for it, and for what is handed over, unless the workbench is away.

        Returns
        -------
        bool
            True if all is scored in time.
        """
        deadline = time.monotonic() + timeout_millis / 1000
        done = self._worker.flush(timeout_millis / 1000)
        if self._hand_over is not None:
            self._hand_over.flush(min(max(0.0, deadline - time.monotonic()), TIMEOUT_MAX), give_up=True)
        return done

    def shutdown(self) -> None:
        """Score what waits for at most `shutdown_seconds`. What is left counts as dropped, and is logged."""
        deadline = time.monotonic() + self._shutdown_seconds
        self._worker.stop(self._shutdown_seconds)
        if self._hand_over is not None:
            self._hand_over.close(max(0.0, deadline - time.monotonic()))

    def counts(self) -> Counts:
        """Count the LLM spans of this process by outcome.

        Returns
        -------
        Counts
        """
        return self._worker.counts()

    @property
    def handed_over(self) -> HandOverCounts:
        """The decided answers of this process by what became of them on the way to the workbench."""
        return HandOverCounts() if self._hand_over is None else self._hand_over.counts

    def _judge(self, answers: Sequence[Answer]) -> int:
        """Score the answers and send the results. Returns how many answers could not be scored."""
        deadline = None if self._deadline is None else self._deadline * len(answers)
        traces, passed = [answer.trace for answer in answers], self._find_passed(answers)
        results = self._scorer.score(traces, passed=passed, deadline=deadline)
        decisions = [result.decision for result in results]
        for answer, result, decision in zip(answers, results, decisions, strict=True):
            if self._hand_over is not None:
                self._hand_over.offer(answer)
            try:
                self._send_result(answer, result, decision)
            except BaseException as error:  # raising would make the worker send the other results twice
                self._worker.report_once("sending a result", error)
        return sum(decision.unscored for decision in decisions)

    def _find_passed(self, answers: Sequence[Answer]) -> list[dict[str, float | None]] | None:
        """The scores of external detectors that came with the answers' spans; None where the release has no such."""
        external = {name for name, entry in current(self._thresholds).detectors.items() if entry.is_external}
        if not external:
            return None
        numbers = [[each for each in answer.evaluations if each.value is not None] for answer in answers]
        return [{each.name: each.value for each in reversed(given) if each.name in external} for given in numbers]

    def _send_result(self, answer: Answer, result: Scored, decision: Decision) -> None:
        self._metrics.record(result, decision)
        provider = self._tracers or trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider):
            self._worker.report_once("results go nowhere", _NOWHERE)
        tracer = provider.get_tracer(SCOPE, calibrate.__version__)
        loggers = self._loggers or _logs.get_logger_provider()
        sends_nothing = type(loggers).__name__ in ("ProxyLoggerProvider", "NoOpLoggerProvider")
        logger = None if sends_nothing else loggers.get_logger(SCOPE, calibrate.__version__)
        emit(tracer, answer, result, decision, logger)
        if self._alerts is not None:
            context = context_of(answer)
            ids = trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)
            self._alerts.offer(answer.trace, decision, span=ids)


def _never(span: object) -> bool:
    """The reader finds no answers by itself: the program's rule picks them where spans end."""
    return False


def _intake(processor: TouchstoneSpanProcessor | None) -> Intake | None:
    return processor._worker.intake if processor else None


_alive: weakref.WeakSet[TouchstoneSpanProcessor] = weakref.WeakSet()


def _after_fork() -> None:
    for processor in list(_alive):
        processor._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
