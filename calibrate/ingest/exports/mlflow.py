"""MLflow's traces as spans: as `Trace.to_json` and `search_traces` give them, of version 2 and 3.

What a span took and returned is in the program's own form: it is read like that of other systems.

References
----------
The data model: https://mlflow.org/docs/latest/genai/concepts/trace/
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from calibrate.ingest.exports.fields import identity, items, mapping, nanoseconds, scalars
from calibrate.ingest.exports.remarks import Remark
from calibrate.ingest.spans.dialects import mlflow as dialect
from calibrate.ingest.spans.logged import chat, content
from calibrate.ingest.spans.record import SpanEvent, SpanRecord
from calibrate.ingest.values import FieldError, expected

_SHARED = {"mlflow.trace.session": "session.id", "mlflow.trace.user": "user.id"}
_HEX = re.compile("[0-9a-f]{16}|[0-9a-f]{32}")
_OWN_ID = re.compile("(?:tr-)?([0-9a-f]{32})")
MAX_SPANS = 50_000


@dataclass(slots=True)
class MlflowTrace:
    """A trace of MLflow.

    Attributes
    ----------
    id : str
        Its OpenTelemetry id where it has one: MLflow writes `tr-` before it.
    spans : list of SpanRecord
        In the order in which they began.
    remarks : list of Remark
        Its assessments that count.
    calls : int
        Calls of a model that only call tools.
    state : str
        OK, ERROR, or IN_PROGRESS.
    """

    id: str
    spans: list[SpanRecord] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    calls: int = 0
    state: str = ""


def build_trace(document: Mapping[str, Any]) -> MlflowTrace:
    """Build a trace. Where no call of a model holds a text, what came out of the root is the answer.

    Parameters
    ----------
    document : mapping
        With `info` and `data`.

    Returns
    -------
    MlflowTrace

    Raises
    ------
    FieldError
        A trace or a span without an id, a time that is none.
    """
    info, data = mapping(document.get("info")), mapping(document.get("data"))
    rows = items(data.get("spans")) or items(document.get("spans"))
    if not all(isinstance(row, Mapping) for row in rows):
        raise expected("spans", "objects", next(row for row in rows if not isinstance(row, Mapping)))
    if len(rows) > MAX_SPANS:
        raise FieldError(f"spans: {len(rows):,} of them, at most {MAX_SPANS:,} are taken")
    name = trace_id_of(info) if info else _span_trace(rows)
    built = MlflowTrace(name, state=str(info.get("state") or info.get("status") or ""))
    built.remarks = list(remarks_of(info))
    shared = _shared(info)
    read = sorted((_Span.of(row) for row in rows), key=lambda span: span.started)
    root = next((span for span in read if span.parent is None), None)
    question = chat.question_of(chat.request(root.inputs)) if root is not None else None
    answered = False
    for span in read:
        attributes = {**shared, **span.attributes}
        holds = dialect.HOLDS.get(span.kind)
        if holds == "answer":
            call, replied = content.model_call(span.inputs, span.outputs, question=question, model=span.model)
            attributes |= call
            built.calls += replied.calls and not replied.texts
            answered |= bool(call)
        elif holds == "sources":
            attributes |= content.retrieval(span.inputs, span.outputs)
        elif holds == "tool":
            attributes |= content.tool_call(span.name, span.outputs)
        else:  # spans that came by OpenTelemetry keep the attributes of their convention
            answered |= "gen_ai.output.messages" in attributes or "llm.output_messages.0.message.role" in attributes
        built.spans.append(span.record(name, attributes))
    if root is not None and not answered:
        _answer_by_root(built, root, question)
    return built


def trace_id_of(info: Mapping[str, Any]) -> str:
    """The id of a trace, without MLflow's `tr-`. Raises FieldError where there is none.

    Parameters
    ----------
    info : mapping

    Returns
    -------
    str
    """
    stated = identity(info.get("trace_id") or info.get("request_id"), "trace_id")
    own = _OWN_ID.fullmatch(stated)
    return own[1] if own else stated


def remarks_of(info: Mapping[str, Any]) -> Iterator[Remark]:
    """Read the assessments of a trace that count: not those that another one replaced.

    Parameters
    ----------
    info : mapping

    Yields
    ------
    Remark
        By a person where its source is HUMAN.
    """
    for each in items(info.get("assessments")):
        if not isinstance(each, Mapping) or each.get("valid") is False:
            continue
        source, feedback = mapping(each.get("source")), each.get("feedback")
        name = each.get("assessment_name", each.get("name"))
        span, author, comment = each.get("span_id"), source.get("source_id"), each.get("rationale")
        yield Remark(
            name=str(name or ""),
            value=feedback.get("value") if isinstance(feedback, Mapping) else None,
            by_person=source.get("source_type") == "HUMAN",
            target=span if isinstance(span, str) and span else None,
            author=author if isinstance(author, str) else "",
            comment=comment if isinstance(comment, str) and comment else None,
            made_at=each.get("last_update_time") or each.get("create_time"),
            place=f"assessment {str(each.get('assessment_id') or '')[:60]}",
        )


@dataclass(slots=True)
class _Span:
    """A span, with its attributes decoded: MLflow writes each as JSON."""

    id: str
    parent: str | None
    name: str
    started: int
    ended: int
    attributes: dict[str, Any]
    events: tuple[SpanEvent, ...]
    kind: str
    inputs: Any
    outputs: Any

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> _Span:
        context = mapping(row.get("context"))
        attributes = {str(name): dialect.decoded(value) for name, value in mapping(row.get("attributes")).items()}
        inputs, outputs = (
            attributes.pop(dialect.INPUTS, row.get("inputs")),
            attributes.pop(dialect.OUTPUTS, row.get("outputs")),
        )
        parent = row.get("parent_span_id") or row.get("parent_id")
        return cls(
            id=_id(context.get("span_id") or row.get("span_id"), "span_id"),
            parent=_id(parent, "parent_id") if parent else None,
            name=str(row.get("name") or ""),
            started=_nanoseconds(row, "start_time"),
            ended=_nanoseconds(row, "end_time"),
            attributes=attributes,
            events=tuple(_events(row.get("events"))),
            kind=str(attributes.pop(dialect.KIND, None) or row.get("span_type") or "").upper(),
            inputs=inputs,
            outputs=outputs,
        )

    @property
    def model(self) -> str | None:
        return dialect.model_of(self.attributes, self.inputs, self.outputs)

    def record(self, trace_id: str, attributes: Mapping[str, Any]) -> SpanRecord:
        lasting = {name: value for name, value in attributes.items() if not name.startswith("mlflow.")}
        return SpanRecord(
            trace_id, self.id, self.parent, self.name, "mlflow", self.started, self.ended, lasting, self.events
        )


def _answer_by_root(built: MlflowTrace, root: _Span, question: str | None) -> None:
    models = {model for model in (span.attributes.get("gen_ai.response.model") for span in built.spans) if model}
    at = next(at for at, span in enumerate(built.spans) if span.span_id == root.id)
    inner = [span.attributes for span in built.spans]
    model = models.pop() if len(models) == 1 else root.model
    attributes = content.whole_trace(root.outputs, question=question, model=model, inner=inner)
    built.spans[at] = replace(built.spans[at], attributes={**built.spans[at].attributes, **attributes})


def _shared(info: Mapping[str, Any]) -> dict[str, Any]:
    """What the trace says for all its spans: session, user, and the tags that the program set."""
    metadata = mapping(info.get("trace_metadata") or info.get("request_metadata"))
    tags = {name: value for name, value in scalars(info.get("tags")).items() if not name.startswith("mlflow.")}
    return {**tags, **{name: metadata[key] for key, name in _SHARED.items() if metadata.get(key)}}


def _span_trace(rows: list[Any]) -> str:
    """The trace's id where only spans are given."""
    first = mapping(rows[0]) if rows else {}
    return _id(mapping(first.get("context")).get("trace_id") or first.get("trace_id"), "trace_id")


def _id(value: Any, name: str) -> str:
    """An id in hexadecimal, which version 3 writes in base64, and version 2 with 0x before it."""
    text = identity(value, name)
    lower = text.lower().removeprefix("0x")
    if _HEX.fullmatch(lower):
        return lower
    try:
        decoded = base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return text
    return decoded if _HEX.fullmatch(decoded) else text


def _nanoseconds(row: Mapping[str, Any], name: str) -> int:
    value = row.get(f"{name}_unix_nano", row.get(f"{name}_ns", row.get(name)))
    if isinstance(value, str) and value.isdigit():
        value = int(value[:25])
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    return nanoseconds(value)


def _events(value: Any) -> Iterator[SpanEvent]:
    for event in items(value):
        if isinstance(event, Mapping):
            yield SpanEvent(str(event.get("name") or ""), dict(mapping(event.get("attributes"))))
