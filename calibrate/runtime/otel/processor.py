"""A span processor for the OpenTelemetry SDK that scores LLM answers as they are traced.

    provider.add_span_processor(TouchstoneSpanProcessor("thresholds.json"))

The program's threads only put spans in a queue. A thread beside them puts each answer together, runs the detectors of
the thresholds file, decides, and sends the result as a span, events and metrics.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

import calibrate
from calibrate.errors import BadInput
from calibrate.runtime.alerts import Alerts
from calibrate.runtime.given import check_number, kind_of
from calibrate.runtime.live import Live, load
from calibrate.runtime.otel.emit import SCOPE, emit
from calibrate.runtime.otel.gather import Answer
from calibrate.runtime.otel.intake import Counts, Intake
from calibrate.runtime.otel.metrics import Metrics
from calibrate.runtime.otel.spans import IsLlm, Reader
from calibrate.runtime.otel.worker import OURS, Worker
from calibrate.runtime.scoring import Scored, Scorer
from calibrate.thresholds.model import ThresholdsFile

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_NOWHERE = "no tracer provider is set: call opentelemetry.trace.set_tracer_provider, or give tracer_provider"


class TouchstoneSpanProcessor(SpanProcessor):
    """Scores the answers that LLM spans hold.

    thresholds        path or URL of the thresholds file (looked at every `reload_every` seconds), or what `load` gave
    detectors         names; only these of the file's detectors run. The others' scores are missing
    alerts            where flags are sent (calibrate.runtime.alerts), besides telemetry
    is_llm            which spans hold an answer, in place of the conventions. Runs where spans end: keep it short
    attributes        field ("answer", "question", "sources", …) → the attribute that has it, for spans of no convention
    gather_seconds    how long a trace waits, after its last span, for its root to end
    max_queue         spans that may wait; what comes when so many do is dropped and counted
    cpu_share         how much of one core scoring may take, above 0 and up to 1
    shutdown_seconds  how long `shutdown` goes on scoring what waits
    tracer_provider   where results go; the global one unless given. Likewise `meter_provider`
    logger_provider   sends the events as log records too

    Raises BadThresholds for a file that is not there or must not be used, BadInput for a setting that cannot be. After
    that nothing here raises, and nothing but the spans' own text is kept in memory: see `counts` for what became of it.
    """

    def __init__(
        self,
        thresholds: str | os.PathLike[str] | ThresholdsFile | Live,
        *,
        detectors: Sequence[str] | None = None,
        alerts: Alerts | None = None,
        is_llm: IsLlm | None = None,
        attributes: Mapping[str, str] | None = None,
        reload_every: float = 30.0,
        gather_seconds: float = 60.0,
        max_queue: int = 2048,
        cpu_share: float = 0.5,
        shutdown_seconds: float = 5.0,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
    ) -> None:
        check_number("gather_seconds", gather_seconds, "wait")
        check_number("max_queue", max_queue, "count")
        check_number("cpu_share", cpu_share, "share")
        check_number("shutdown_seconds", shutdown_seconds, "wait")
        if is_llm is not None and not callable(is_llm):
            raise BadInput(f"is_llm is {kind_of(is_llm)}; give a function of a span")
        if alerts is not None and not isinstance(alerts, Alerts):
            raise BadInput(f"alerts is {kind_of(alerts)}; give Alerts(url)")
        if not isinstance(thresholds, (ThresholdsFile, Live)):
            thresholds = load(thresholds, reload_every=reload_every)
        self._thresholds, self._detectors, self._alerts = thresholds, detectors, alerts
        try:
            self._reader = Reader(is_llm, {} if attributes is None else attributes)
        except ValueError as error:
            raise BadInput(f"attributes: {error}") from error
        self._settings = {"gather_seconds": gather_seconds, "most": max_queue, "cpu_share": cpu_share}
        self._shutdown_seconds = shutdown_seconds
        self._tracers, self._loggers = tracer_provider, logger_provider
        self._begin()
        self._scorer.prepare()
        meter = metrics.get_meter(SCOPE, calibrate.__version__, meter_provider)
        me = weakref.ref(self)
        self._metrics = Metrics(meter, lambda: _intake(me()))
        _alive.add(self)

    def _begin(self) -> None:
        """A queue of its own for this process; the thread starts with the first span. A forked child calls it again:
        the parent scores what the parent has, and locks that its threads held are left behind."""
        self._ours: set[int] = set()  # the spans that began while scoring and have not ended
        self._scorer = Scorer(self._thresholds, detectors=self._detectors)
        self._worker = Worker(self._reader, self._judge, **self._settings)  # type: ignore[arg-type]

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if OURS.get():  # made while scoring, by a detector or as a result: an answer to these has no end
            self._ours.add(span.get_span_context().span_id)

    def on_end(self, span: ReadableSpan) -> None:
        """Puts the span down. Never waits, never raises."""
        try:
            if self._ours and self._is_ours(span):
                return
            rule = self._reader.is_llm
            self._worker.intake.offer(span, rule is not None and self._picks(rule, span))
        except Exception as error:
            self._worker.say_once("taking a span in", error)

    def _is_ours(self, span: ReadableSpan) -> bool:
        """Whether it began while scoring. Where it ends says nothing: one of the program's may end there too, with its
        last reference, and one of a detector's in a thread of its own."""
        context = span.get_span_context()
        if context is None or context.span_id not in self._ours:
            return False
        self._ours.discard(context.span_id)
        return True

    def _picks(self, rule: IsLlm, span: ReadableSpan) -> bool:
        try:
            return bool(rule(span))
        except Exception as error:  # its sources and its end still count
            self._worker.say_once("is_llm, and a span for which it raises holds no answer", error)
            return False

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Scores all that has ended, without waiting for roots; True when that was done in time."""
        return self._worker.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Scores what waits for `shutdown_seconds` at most; what is left is counted as dropped, and logged."""
        self._worker.stop(self._shutdown_seconds)

    def counts(self) -> Counts:
        """What became of the LLM spans of this process."""
        return self._worker.counts()

    def _judge(self, answers: Sequence[Answer]) -> None:
        results = self._scorer.score([answer.trace for answer in answers])
        for answer, result in zip(answers, results, strict=True):
            try:
                self._tell(answer, result)
            except BaseException as error:  # none may come out: the worker would have the others told twice
                self._worker.say_once("telling a result", error)

    def _tell(self, answer: Answer, result: Scored) -> None:
        decision = result.decision
        self._metrics.record(result, decision)
        provider = self._tracers or trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider):
            self._worker.say_once("results go nowhere", _NOWHERE)
        tracer = provider.get_tracer(SCOPE, calibrate.__version__)
        logger = self._loggers.get_logger(SCOPE, calibrate.__version__) if self._loggers else None
        emit(tracer, answer, result, decision, logger)
        if self._alerts is not None:
            self._alerts.offer(answer.trace, decision)


def _intake(processor: TouchstoneSpanProcessor | None) -> Intake | None:
    return processor._worker.intake if processor else None


_alive: weakref.WeakSet[TouchstoneSpanProcessor] = weakref.WeakSet()


def _after_fork() -> None:
    for processor in list(_alive):
        processor._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
