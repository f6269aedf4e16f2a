"""Langfuse's observations as spans: from its exports, and as its API returns them.

An export holds `{trace, observations}`, a list or lines of those, a trace with its observations in it, or the rows of
its tables of observations or traces. Input, output and metadata are JSON in texts, at times nested twice.

References
----------
Types of observations: https://langfuse.com/docs/observability/features/observation-types
The fields: https://api.reference.langfuse.com
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from calibrate.ingest.exports.fields import identity, items, mapping, nanoseconds, scalars
from calibrate.ingest.exports.remarks import Remark
from calibrate.ingest.spans.logged import chat, content
from calibrate.ingest.spans.record import SpanRecord
from calibrate.ingest.values import FieldError, expected

# OpenTelemetry's attributes that carry content: it is read from input and output, as Langfuse understood it.
_CONTENT = (
    "gen_ai.", "llm.", "input.", "output.", "retrieval.", "reranker.", "openinference.", "traceloop.", "ai.",
    "langfuse.observation.", "langfuse.trace.metadata", "langfuse.trace.input", "langfuse.trace.output", "message.",
    "tool.", "embedding.", "graph.", "mlflow.", "logfire.", "pydantic_ai.", "gcp.vertex.agent.",
)  # fmt: skip
_TAKEN = ("gen_ai.response.id", "gen_ai.response.model", "gen_ai.request.model")
_OF_TRACE = {
    "name": "langfuse.trace.name",
    "userId": "user.id",
    "sessionId": "session.id",
    "release": "langfuse.release",
    "version": "langfuse.version",
    "environment": "langfuse.environment",
}
# As an observation's row names them where it stands without its trace.
_OF_ROW = {"traceName": "name", "userId": "userId", "sessionId": "sessionId", "release": "release",
           "version": "version", "environment": "environment"}  # fmt: skip
_OTHER_NAMES = {
    "trace_id": "traceId", "start_time": "startTime", "end_time": "endTime", "user_id": "userId",
    "parent_observation_id": "parentObservationId", "session_id": "sessionId", "trace_name": "traceName",
    "is_root_observation": "isRootObservation", "provided_model_name": "model", "providedModelName": "model",
    "trace_tags": "tags", "traceTags": "tags",
}  # fmt: skip
_KINDS = {"RERANKER": "RETRIEVER"}


@dataclass(slots=True)
class LangfuseTrace:
    """A trace of Langfuse.

    Attributes
    ----------
    id : str
    spans : list of SpanRecord
        In the order in which they began.
    scores : list of mapping
        As Langfuse has them.
    generations : int
        How many observations are generations.
    calls : int
        How many of those only call tools.
    """

    id: str
    spans: list[SpanRecord] = field(default_factory=list)
    scores: list[Mapping[str, Any]] = field(default_factory=list)
    generations: int = 0
    calls: int = 0


def build_trace(trace: Mapping[str, Any] | None, observations: Iterable[Mapping[str, Any]]) -> LangfuseTrace:
    """Build a trace. Where no generation holds a text, what came out of the whole trace is its answer.

    Parameters
    ----------
    trace : mapping or None
        The trace itself, where the export has it: its observations' rows hold a part of what it says.
    observations : iterable of mapping
        With the API's names of fields; those of the Python client are read too.

    Returns
    -------
    LangfuseTrace

    Raises
    ------
    FieldError
        An observation without an id, a time that is none, ids that differ.
    """
    rows = sorted((_named(row) for row in observations), key=lambda row: nanoseconds(row.get("startTime")))
    context = _of_rows(rows) if trace is None else trace
    built = LangfuseTrace(_trace_id(trace, rows))
    built.scores = [each for each in items(context.get("scores")) if isinstance(each, Mapping)]
    ids = {str(row.get("id")) for row in rows}
    shared = _trace_attributes(context)
    asked_for = _whole(context.get("input"))
    question = chat.question_of(chat.request(asked_for)) if asked_for else None
    answered = False
    for row in rows:
        span = _span(row, built.id, ids)
        attributes = {**shared, **_own_attributes(row)}
        kind = _kind(row)
        if kind == "GENERATION":
            model = str(row["model"]) if row.get("model") else None
            call, replied = content.model_call(row.get("input"), row.get("output"), question=question, model=model)
            attributes = {**call, **attributes} if call else attributes
            built.generations += 1
            built.calls += replied.calls and not replied.texts
            answered |= bool(call)
        elif kind == "RETRIEVER":
            # Older versions keep the documents in the attributes alone.
            flat = {key: value for key, value in _otel(row).items() if key.startswith("retrieval.documents.")}
            attributes |= {**flat, **content.retrieval(row.get("input"), row.get("output"))}
        elif kind == "TOOL":
            attributes |= content.tool_call(str(row.get("name") or ""), row.get("output"))
        built.spans.append(replace(span, attributes=attributes))
    if not answered:
        _answer_by_trace(built, context, rows, shared, question)
    return built


def _answer_by_trace(
    built: LangfuseTrace,
    context: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    shared: Mapping[str, Any],
    question: str | None,
) -> None:
    """Some instrumentations keep the text out of the generation, some programs log the trace alone."""
    root = next((at for at, span in enumerate(built.spans) if span.is_root), None)
    output = _whole(context.get("output"))
    if output is None and root is not None:
        output = rows[root].get("output")
        question = question or chat.question_of(chat.request(rows[root].get("input")))
    models = {str(row["model"]) for row in rows if row.get("model")}
    attributes = content.whole_trace(
        output,
        question=question,
        model=models.pop() if len(models) == 1 else None,
        inner=[span.attributes for span in built.spans],
    )
    if not attributes or not (question or built.generations):
        return
    if root is not None:
        whole = built.spans[root]
        built.spans[root] = replace(whole, attributes={**whole.attributes, **attributes})
    elif not rows:
        began = nanoseconds(context.get("timestamp"))
        built.spans.append(
            SpanRecord(built.id, built.id, started=began, ended=began, attributes={**shared, **attributes})
        )


def _span(row: Mapping[str, Any], trace_id: str, ids: set[str]) -> SpanRecord:
    parent = row.get("parentObservationId") or None
    metadata = mapping(row.get("metadata"))
    return SpanRecord(
        trace_id=trace_id,
        span_id=identity(row.get("id"), "id"),
        parent_id=None if parent is None else str(parent),
        name=str(row.get("name") or ""),
        scope=str(mapping(metadata.get("scope")).get("name") or ""),
        started=nanoseconds(row.get("startTime")),
        ended=nanoseconds(row.get("endTime")),
        resource=mapping(metadata.get("resourceAttributes")),
        remote_parent=parent is not None and str(parent) not in ids,
    )


def _kind(row: Mapping[str, Any]) -> str:
    """The observation's type. Langfuse of before September 2025 knew spans, generations and events only."""
    kind = str(row.get("type") or "").upper()
    if kind not in ("SPAN", ""):
        return _KINDS.get(kind, kind)
    raw = _otel(row)
    stated = str(raw.get("openinference.span.kind") or "").upper()
    if raw.get("gen_ai.operation.name") == "execute_tool" or "gen_ai.tool.call.id" in raw:
        return "TOOL"
    stated = _KINDS.get(stated, stated)
    return stated if stated in ("RETRIEVER", "TOOL") else kind


def _trace_attributes(trace: Mapping[str, Any]) -> dict[str, Any]:
    attributes = _metadata(trace)
    attributes |= {key: str(trace[name]) for name, key in _OF_TRACE.items() if trace.get(name) not in (None, "")}
    tags = [str(tag) for tag in items(trace.get("tags")) if isinstance(tag, (str, int))]
    if tags:
        attributes["langfuse.trace.tags"] = ", ".join(tags)
    return attributes


def _own_attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    attributes = _metadata(row)
    attributes |= {
        key: value for key, value in scalars(_otel(row)).items() if not key.startswith(_CONTENT) or key in _TAKEN
    }
    if row.get("name"):
        attributes["langfuse.observation.name"] = str(row["name"])
    if row.get("level") not in (None, "", "DEFAULT"):
        attributes["langfuse.observation.level"] = str(row["level"])
    return attributes


def _metadata(row: Mapping[str, Any]) -> dict[str, Any]:
    own = ("attributes", "resourceAttributes", "scope")
    return {
        key: value
        for key, value in scalars(row.get("metadata")).items()
        if key not in own and not key.startswith(_CONTENT)
    }


def _otel(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(row.get("metadata")).get("attributes"))


def _of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the rows of observations say of their trace."""
    context: dict[str, Any] = {}
    for row in rows:
        for name, key in _OF_ROW.items():
            if row.get(name) not in (None, ""):
                context.setdefault(key, row[name])
        if row.get("tags"):
            context.setdefault("tags", row["tags"])
    root = next((row for row in rows if not row.get("parentObservationId") or row.get("isRootObservation")), None)
    if root is not None:
        context["input"], context["output"] = root.get("input"), root.get("output")
    return context


def _named(row: Any) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        raise expected("observations", "objects", row)
    if not _OTHER_NAMES.keys() & row.keys():
        return row
    return {_OTHER_NAMES.get(str(key), str(key)): value for key, value in row.items()}


def _trace_id(trace: Mapping[str, Any] | None, rows: Sequence[Mapping[str, Any]]) -> str:
    own = trace.get("id") if trace is not None else None
    name = identity(own if own is not None else rows[0].get("traceId") if rows else None, "trace id")
    if strangers := [row["traceId"] for row in rows if row.get("traceId") not in (None, name)]:
        raise FieldError(f"traceId: an observation of trace {str(strangers[0])[:60]!r} in trace {name[:60]!r}")
    return name


def _whole(value: Any) -> Any:
    """A trace's input and output are JSON in a text, plain texts too."""
    if isinstance(value, str) and value[:1] == '"':
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def remark_of(score: Mapping[str, Any]) -> Remark:
    """Read a score: of an export, or as the API returns it. Raises FieldError for one without a name."""
    kind, value = str(score.get("dataType") or ""), score.get("value")
    words = next((score[key] for key in ("stringValue", "longStringValue") if score.get(key)), None)
    if kind == "BOOLEAN" and isinstance(value, (int, float)):
        value = bool(value)
    elif kind not in ("NUMERIC", "BOOLEAN") and words is not None:
        value = words
    subject = mapping(score.get("subject"))
    target = score.get("observationId") or (subject.get("id") if subject.get("kind") == "observation" else None)
    source = score.get("source")
    return Remark(
        name=identity(score.get("name"), "score name"),
        value=value,
        by_person=str(getattr(source, "value", source)) == "ANNOTATION",
        target=None if target is None else str(target),
        author=str(score.get("authorUserId") or "langfuse"),
        comment=str(score["comment"]) if score.get("comment") else None,
        made_at=score.get("updatedAt") or score.get("timestamp"),
        place=f"score {str(score.get('id'))[:60]}",
    )


def scored_trace(score: Mapping[str, Any]) -> str | None:
    """The trace that a score is about. None for one about a session or an experiment."""
    subject = mapping(score.get("subject"))
    kind = subject.get("kind")
    own = {"trace": subject.get("id"), "observation": subject.get("traceId")}.get(str(kind), score.get("traceId"))
    return None if own is None else str(own)
