"""LangSmith's runs as spans: from files of runs, and as its API returns them.

A file holds runs as `Client.list_runs` gives them, one a line, in a list, or under `runs`. Children may stand in
`child_runs`.

References
----------
The fields of a run: https://docs.langchain.com/langsmith/run-data-format
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from calibrate.ingest.exports.fields import identity, items, mapping, nanoseconds, scalars
from calibrate.ingest.exports.remarks import Remark
from calibrate.ingest.spans.logged import chat, content
from calibrate.ingest.spans.record import SpanRecord
from calibrate.ingest.values import FieldError, expected

# `20251123T101112131415Z<id of the root>.20251123T…`: where a run stands in its trace.
_FIRST = re.compile(r"\d{8}T\d{6,}Z([0-9a-fA-F-]{36})")
_SESSIONS = ("session_id", "thread_id", "conversation_id")
_MODELS = ("model_name", "model", "model_id", "ls_model_name")


@dataclass(slots=True)
class LangSmithTrace:
    """A trace of LangSmith.

    Attributes
    ----------
    id : str
    spans : list of SpanRecord
        In the order in which they began.
    generations : int
        How many runs are calls of a model.
    calls : int
        How many of those only call tools.
    """

    id: str
    spans: list[SpanRecord] = field(default_factory=list)
    generations: int = 0
    calls: int = 0


def flatten(run: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A run and the runs in its `child_runs`, however deep."""
    waiting: list[tuple[Any, Any, Any]] = [(run, None, None)]
    while waiting:
        each, parent, trace_id = waiting.pop()
        if not isinstance(each, Mapping):
            raise expected("runs", "objects", each)
        if each.get("run_type") is None:
            raise FieldError("run_type: missing")
        inherited = {"parent_run_id": parent, "trace_id": trace_id}
        each = {**each, **{name: value for name, value in inherited.items() if value and not each.get(name)}}
        waiting += [(child, each.get("id"), trace_id_of(each)) for child in items(each.get("child_runs"))]
        yield each


def trace_id_of(run: Mapping[str, Any]) -> str:
    """The id of the run's trace, which is the id of its root. Raises FieldError where the run says neither."""
    stated = run.get("trace_id")
    if stated is None and isinstance(run.get("dotted_order"), str) and (first := _FIRST.match(run["dotted_order"])):
        stated = first[1]
    if stated is None and not run.get("parent_run_id"):
        stated = run.get("id")
    return identity(stated, "trace_id")


def build_trace(runs: Iterable[Mapping[str, Any]]) -> LangSmithTrace:
    """Build a trace. Where no call of a model holds a text, what came out of the root is the answer.

    Parameters
    ----------
    runs : iterable of mapping
        All of one trace.

    Returns
    -------
    LangSmithTrace

    Raises
    ------
    FieldError
        A run without an id, a time that is none.
    """
    rows = sorted(runs, key=lambda run: nanoseconds(run.get("start_time")))
    built = LangSmithTrace(trace_id_of(rows[0]))
    ids = {str(row.get("id")) for row in rows}
    root = next((row for row in rows if not row.get("parent_run_id")), None)
    question = chat.question_of(chat.request(root.get("inputs"))) if root is not None else None
    shared = {} if root is None else _attributes(root)
    shared.pop("langsmith.run.name", None)
    answered = False
    for row in rows:
        kind = str(row.get("run_type") or "").lower()
        attributes = {**shared, **_attributes(row)}
        if kind == "llm":
            call, replied = content.model_call(
                row.get("inputs"), row.get("outputs"), question=question, model=_model(row)
            )
            attributes |= call
            built.generations += 1
            built.calls += replied.calls and not replied.texts
            answered |= bool(call)
        elif kind == "retriever":
            attributes |= content.retrieval(row.get("inputs"), row.get("outputs"))
        elif kind == "tool":
            attributes |= content.tool_call(str(row.get("name") or ""), row.get("outputs"))
        built.spans.append(_span(row, built.id, ids, attributes))
    if not answered:
        _answer_by_root(built, rows, question)
    return built


def _answer_by_root(built: LangSmithTrace, rows: Sequence[Mapping[str, Any]], question: str | None) -> None:
    at = next((at for at, row in enumerate(rows) if not row.get("parent_run_id")), None)
    if at is None or not (question or built.generations):
        return
    models = {model for row in rows if row.get("run_type") == "llm" and (model := _model(row))}
    model = models.pop() if len(models) == 1 else None
    whole = built.spans[at]
    inner = [span.attributes for span in built.spans]
    attributes = content.whole_trace(rows[at].get("outputs"), question=question, model=model, inner=inner)
    built.spans[at] = replace(whole, attributes={**whole.attributes, **attributes})


def _span(row: Mapping[str, Any], trace_id: str, ids: set[str], attributes: dict[str, Any]) -> SpanRecord:
    parent = str(row["parent_run_id"]) if row.get("parent_run_id") else None
    return SpanRecord(
        trace_id=trace_id,
        span_id=identity(row.get("id"), "id"),
        parent_id=parent,
        name=str(row.get("name") or ""),
        scope="langsmith",
        started=nanoseconds(row.get("start_time")),
        ended=nanoseconds(row.get("end_time")),
        attributes=attributes,
        remote_parent=parent is not None and parent not in ids,
    )


def _attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = mapping(mapping(row.get("extra")).get("metadata"))
    attributes: dict[str, Any] = {key: value for key, value in scalars(metadata).items() if not key.startswith("ls_")}
    session = next((str(metadata[key]) for key in _SESSIONS if metadata.get(key)), None)
    if session:
        attributes["session.id"] = session
    if metadata.get("user_id"):
        attributes["user.id"] = str(metadata["user_id"])
    if row.get("name"):
        attributes["langsmith.run.name"] = str(row["name"])
    if row.get("session_name"):
        attributes["langsmith.project"] = str(row["session_name"])
    tags = [str(tag) for tag in items(row.get("tags")) if isinstance(tag, (str, int))]
    if tags:
        attributes["langsmith.tags"] = ", ".join(tags)
    return attributes


def _model(row: Mapping[str, Any]) -> str | None:
    """The model that answered, else the one that was called."""
    extra = mapping(row.get("extra"))
    outputs = mapping(row.get("outputs"))
    message = _first_message(outputs)
    places = (
        mapping(message.get("response_metadata")), mapping(outputs.get("llm_output")), outputs,
        mapping(extra.get("metadata")), mapping(extra.get("invocation_params")),
    )  # fmt: skip
    names = (place.get(key) for place in places for key in _MODELS)
    return next((name for name in names if isinstance(name, str) and name), None)


def _first_message(outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    value: Any = outputs.get("generations")
    while isinstance(value, list) and value:
        value = value[0]
    message = mapping(mapping(value).get("message"))
    return mapping(message.get("kwargs")) or message


def remark_of(feedback: Mapping[str, Any]) -> Remark:
    """Read a feedback. Raises FieldError for one without a key."""
    source = mapping(feedback.get("feedback_source"))
    score, value = feedback.get("score"), feedback.get("value")
    # What people and models choose from categories stands in `value`, and its number in `score`.
    by_person = source.get("type") == "app"
    return Remark(
        name=identity(feedback.get("key"), "feedback key"),
        value=(value if isinstance(value, str) and value else score) if by_person else score,
        by_person=by_person,
        target=None if feedback.get("run_id") is None else str(feedback["run_id"]),
        author=str(source.get("user_name") or source.get("user_id") or "langsmith"),
        comment=str(feedback["comment"]) if feedback.get("comment") else None,
        made_at=feedback.get("modified_at") or feedback.get("created_at"),
        place=f"feedback {str(feedback.get('id'))[:60]}",
    )
