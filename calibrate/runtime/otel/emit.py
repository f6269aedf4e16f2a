"""Send a decision as telemetry: one span per answer, one event per detector.

The span `touchstone.detector.result` is a child of the LLM span and linked to it (the link survives backends that drop
late children). There is one span per answer, not per detector: the decision belongs to the answer, and a backend's
search for flagged answers should find each once. Its events are `gen_ai.evaluation.result` of the OpenTelemetry GenAI
conventions, which define that event as a log record parented to the LLM span; with a logger provider it is sent as a
log record too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from inspect import signature
from time import time_ns
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import INVALID_SPAN_CONTEXT, Link, NonRecordingSpan, SpanContext, set_span_in_context

from calibrate.ingest.spans.answers import Answer
from calibrate.runtime.decision import Decision
from calibrate.runtime.scoring import Scored
from calibrate.types import Score

if TYPE_CHECKING:
    from opentelemetry._logs import Logger
    from opentelemetry.trace import Tracer

SCOPE = "touchstone"
SPAN = "touchstone.detector.result"
EVENT = "gen_ai.evaluation.result"
VERSION = "touchstone.thresholds.version"


def emit(tracer: Tracer, answer: Answer, result: Scored, decision: Decision, logger: Logger | None = None) -> None:
    """Send the result of one answer. The span ends now and lasts as long as the detectors took.

    Parameters
    ----------
    tracer : Tracer
        Starts the span.
    answer : Answer
        Its LLM span becomes the parent: its origin is that span's context.
    result : Scored
        The scores, with their seconds.
    decision : Decision
        The release's decision on them.
    logger : Logger, optional
        Sends each event as a log record too, unless it sends nothing anyway.
    """
    context = context_of(answer)
    parent = set_span_in_context(NonRecordingSpan(context))
    now = time_ns()
    span = tracer.start_span(
        SPAN,
        context=parent,
        links=[Link(context)],
        start_time=now - int(sum(result.seconds.values()) * 1e9),
        attributes=_span_attributes(result, decision) | _response_id(answer),
    )
    for evaluation in _evaluation_events(result, decision):
        event = evaluation | _response_id(answer)
        span.add_event(EVENT, event, timestamp=now)
        if logger is not None:
            _emit_log_record(logger, event, context, now)
    span.end(end_time=now)


def context_of(answer: Answer) -> SpanContext:
    """Return the context of the answer's LLM span.

    Parameters
    ----------
    answer : Answer

    Returns
    -------
    SpanContext
        An invalid one if the answer came another way than by the span processor.
    """
    return answer.origin if isinstance(answer.origin, SpanContext) else INVALID_SPAN_CONTEXT


def _response_id(answer: Answer) -> dict[str, Any]:
    return {} if answer.response_id is None else {"gen_ai.response.id": answer.response_id}


@lru_cache(maxsize=8)
def _takes_fields(kind: type) -> bool:
    """Tell whether loggers of this class take the fields of a record, as they do from 1.37 on."""
    return "event_name" in signature(kind.emit).parameters  # type: ignore[attr-defined]


def _emit_log_record(logger: Logger, event: dict[str, Any], span: SpanContext, now: int) -> None:
    """Send an event as a log record of the LLM span."""
    if _takes_fields(type(logger)):
        parent = set_span_in_context(NonRecordingSpan(span))
        logger.emit(event_name=EVENT, attributes=event, context=parent, timestamp=now)
        return
    from opentelemetry.sdk import _logs  # before 1.37 a logger takes the SDK's own record, and nothing else

    record = _logs.LogRecord(  # type: ignore[attr-defined]
        timestamp=now,
        trace_id=span.trace_id,
        span_id=span.span_id,
        trace_flags=span.trace_flags,
        resource=getattr(logger, "resource", None),
        attributes={"event.name": EVENT, **event},  # where events had their name before records had the field
    )
    logger.emit(record)


def _span_attributes(result: Scored, decision: Decision) -> dict[str, Any]:
    return {
        "touchstone.trace_id": result.trace.id,
        "touchstone.verdict": decision.verdict,
        "touchstone.tier": decision.tier,
        "touchstone.unscored": decision.unscored,
        "touchstone.flags": decision.flags,
        "touchstone.reasons": decision.reasons,
        "touchstone.missing": decision.missing,
        "touchstone.skipped": sorted(result.skipped),
        VERSION: decision.version,
        **{f"touchstone.score.{name}": value for name, value in result.numbers.items()},
    }


def _evaluation_events(result: Scored, decision: Decision) -> Iterator[dict[str, Any]]:
    """One event for every detector that was to run, by name, then one for every ensemble that flagged.

    An unscored answer has one more, for the answer as a whole.
    """
    reasons = dict(zip(decision.flags, decision.reasons, strict=False))  # the last reason may belong to no flag
    for name, score in sorted(result.scores.items()):
        event: dict[str, Any] = {"gen_ai.evaluation.name": name, VERSION: decision.version}
        if score.value is not None:
            event["gen_ai.evaluation.score.value"] = score.value
        event["gen_ai.evaluation.score.label"] = label(score, flagged=name in decision.flags)
        explanation = reasons.get(name) or _explain_score(score, result, name)
        yield event | {"gen_ai.evaluation.explanation": explanation} | _error_type(score)
    for name in decision.flags:
        if name not in result.scores:
            yield {
                "gen_ai.evaluation.name": name,
                VERSION: decision.version,
                "gen_ai.evaluation.score.label": "flagged",
                "gen_ai.evaluation.explanation": reasons[name],
            }
    if decision.unscored:
        yield {
            "gen_ai.evaluation.name": SCOPE,
            VERSION: decision.version,
            "gen_ai.evaluation.score.label": "unscored",
            "gen_ai.evaluation.explanation": decision.reasons[-1],
        }


def label(score: Score, *, flagged: bool) -> str:
    """Label a score.

    Parameters
    ----------
    score : Score
    flagged : bool
        Whether the detector flagged.

    Returns
    -------
    str
        `flagged` or `not_flagged`, or the status of a score without a value: `abstained`, `failed`, `refusal`.
    """
    return score.status if score.value is None else "flagged" if flagged else "not_flagged"


def _explain_score(score: Score, result: Scored, name: str) -> str:
    if score.value is None:
        return score.reason or score.status
    return f"{name} {score.value:.4g}, flags at {result.file.detectors[name].limit_for(result.trace)}"


def _error_type(score: Score) -> dict[str, str]:
    """`error.type` by the conventions, which want few distinct values: the exception's name, or `_OTHER`."""
    if score.status != "failed":
        return {}
    name = (score.reason or "").partition(":")[0]
    return {"error.type": name if name.isidentifier() else "_OTHER"}
