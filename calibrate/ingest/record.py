"""From a row as the file spells it to a checked trace with its labels. By hand, not by a schema library: an import
of a million traces runs through here."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

from calibrate.ingest.base import Record, Rejected, Row
from calibrate.ingest.values import (
    LONGEST_ID,
    LONGEST_NAME,
    FieldError,
    check_tree,
    expected,
    finite,
    name_or_none,
    text_or_none,
    utc,
)
from calibrate.ingest.verdicts import labels_of
from calibrate.sanitize import visible
from calibrate.types import Source, Token, Trace

LONGEST_ATTRIBUTE = 1000
LONGEST_EXTRA = 200
"""Characters of a text that may become an attribute. Attributes are to filter and group by, not to read."""

Scalar = str | int | float | bool | None

KNOWN = frozenset(
    (
        "trace_id",
        "id",
        "timestamp",
        "model",
        "operation",
        "question",
        "context",
        "sources",
        "answer",
        "tokens",
        "alternatives",
        "samples",
        "schema",
        "label",
        "label_type",
        "spans",
        "group",
        "source_id",
        "attributes",
        "extra",
    )
)
"""The fields with a meaning of their own; any other scalar becomes an attribute."""


def build(row: Row, *, format_name: str) -> Record | Rejected:
    """The record of a row, or why there is none. Rows without an id get one from their content.

    Two rows without an id and with the same content, time, operation and group are one trace.
    """
    try:
        trace, left_out = _trace(row.fields)
        labels = labels_of(row.fields, trace)
    except FieldError as error:
        # A field may be named by whoever wrote the file, and this goes to a terminal.
        return Rejected(row.line, visible(str(error)).replace("\n", " "))
    if not trace.id:
        trace = replace(trace, id=_id_from_content(trace, format_name))
        labels = tuple(replace(label, trace_id=trace.id) for label in labels)
    return Record(row.line, trace, labels, row.size, row.repaired, left_out)


def _trace(fields: dict[str, Any]) -> tuple[Trace, tuple[str, ...]]:
    get = fields.get
    answer = get("answer")
    if not isinstance(answer, str):
        raise FieldError("answer: missing") if answer is None else expected("answer", "text", answer)
    trace_id = get("trace_id")
    alternatives = get("alternatives")
    schema = get("schema")
    if schema is not None:
        _check_schema(schema)
    extra = get("extra")
    if extra is not None and not isinstance(extra, dict):
        raise expected("extra", "an object", extra)
    attributes, left_out = _attributes(fields, extra or {})
    trace = Trace(
        id=name_or_none(get("id") if trace_id is None else trace_id, "trace_id", LONGEST_ID) or "",
        answer=answer,
        question=text_or_none(get("question"), "question"),
        context=text_or_none(get("context"), "context"),
        sources=_sources(get("sources")),
        tokens=_tokens(get("tokens")),
        alternatives=_alternatives(get("samples") if alternatives is None else alternatives),
        schema=schema,
        timestamp=utc(get("timestamp")),
        model=name_or_none(get("model"), "model", LONGEST_NAME),
        operation=name_or_none(get("operation"), "operation", LONGEST_NAME),
        group=_group(fields, extra or {}),
        attributes=attributes,
    )
    return trace, left_out


def _sources(value: Any) -> tuple[Source, ...]:
    """`{number: text or object}`, or a list of texts or objects, numbered from 1 unless they carry a number."""
    if not value and (value is None or isinstance(value, (dict, list))):
        return ()
    if isinstance(value, dict):
        return tuple([_source(number, item) for number, item in value.items()])
    if isinstance(value, list):
        sources = tuple([_source(_own_number(item) or str(at), item) for at, item in enumerate(value, start=1)])
        if len({source.number for source in sources}) < len(sources):
            raise FieldError("sources: two of them have the same number")
        return sources
    raise expected("sources", "an object {number: text} or a list", value)


def _own_number(item: Any) -> str | None:
    return name_or_none(item.get("number"), "sources: number", LONGEST_NAME) if isinstance(item, dict) else None


def _source(number: str, item: Any) -> Source:
    if len(number) > LONGEST_NAME:
        raise FieldError(f"sources: a number of {len(number):,} characters, at most {LONGEST_NAME} are possible")
    if isinstance(item, str):
        return Source(number, item)
    if not isinstance(item, dict):
        raise expected(f"sources[{number}]", "text or an object with text", item)
    get = item.get
    text, title, score = get("text"), get("title"), get("retrieval_score")
    # Names for messages are put together only when there is one: this runs for every passage of every trace.
    if not isinstance(text, str):
        raise expected(f"sources[{number}].text", "text", text)
    if title is not None and not isinstance(title, str):
        raise expected(f"sources[{number}].title", "text or null", title)
    if score is not None and not (type(score) is float and -math.inf < score < math.inf):
        score = finite(score, f"sources[{number}].retrieval_score")
    return Source(number, text, title, score)


def _tokens(value: Any) -> tuple[Token, ...] | None:
    if value is None or value == []:
        return None
    if not isinstance(value, list):
        raise expected("tokens", "a list", value)
    return tuple([_token(at, item) for at, item in enumerate(value)])


def _token(at: int, item: Any) -> Token:
    if not isinstance(item, dict):
        raise expected(f"tokens[{at}]", "an object with token and logprob", item)
    get = item.get
    text, logprob, top = get("token"), get("logprob"), get("top_logprobs")
    if not isinstance(text, str):
        raise expected(f"tokens[{at}].token", "text", text)
    if not (type(logprob) is float and -math.inf < logprob < math.inf):
        logprob = finite(logprob, f"tokens[{at}].logprob")
    return Token(text, logprob, _top(top, f"tokens[{at}].top_logprobs") if top else ())


def _top(value: Any, name: str) -> tuple[tuple[str, float], ...]:
    """`[{token, logprob}]` as OpenAI writes it, or `{token: logprob}`."""
    if isinstance(value, dict):
        return tuple([(token, finite(logprob, name)) for token, logprob in value.items()])
    if not isinstance(value, list):
        raise expected(name, "a list or an object", value)
    pairs = []
    for item in value:
        if not isinstance(item, dict) or not isinstance(item.get("token"), str):
            raise expected(name, "objects with token and logprob", item)
        pairs.append((item["token"], finite(item.get("logprob"), name)))
    return tuple(pairs)


def _alternatives(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise expected("alternatives", "a list of texts", value)
    for item in value:
        if not isinstance(item, str):
            raise expected("alternatives", "a list of texts", item)
    return tuple(value)


def _check_schema(schema: Any) -> None:
    if not isinstance(schema, (dict, bool)):
        raise expected("schema", "an object, true or false", schema)
    check_tree(schema, "schema")


def _group(fields: dict[str, Any], extra: dict[str, Any]) -> str | None:
    """Which traces share their sources: said outright, or by the id of what was retrieved within its dataset."""
    group = name_or_none(fields.get("group"), "group", LONGEST_ID)
    if group is not None:
        return group
    # RAGTruth numbers every response in source_id and the passages they share in source_group.
    source = extra.get("source_group")
    source_id = name_or_none(fields.get("source_id") if source is None else source, "source_id", LONGEST_ID)
    dataset = fields.get("dataset")
    if source_id is None or not isinstance(dataset, str) or not dataset:
        return source_id
    return name_or_none(f"{dataset}/{source_id}", "dataset and source_id", LONGEST_ID)


def _attributes(fields: dict[str, Any], extra: dict[str, Any]) -> tuple[dict[str, Scalar], tuple[str, ...]]:
    """Scalars with no field of their own, and the names of what was not one. The record's own word goes first."""
    own = fields.get("attributes")
    if own is not None and not isinstance(own, dict):
        raise expected("attributes", "an object", own)
    kept: dict[str, Scalar] = {}
    left_out: list[str] = []
    unknown = {key: value for key, value in fields.items() if key not in KNOWN}
    for within, values, longest in (
        ("attributes.", own or {}, LONGEST_ATTRIBUTE),
        ("", unknown, LONGEST_ATTRIBUTE),
        ("extra.", extra, LONGEST_EXTRA),
    ):
        for key, value in values.items():
            if value is None:
                continue
            if isinstance(value, float) and not math.isfinite(value):
                raise FieldError(f"{within}{key[:100]}: a number out of range")
            if not _is_short_scalar(value, longest) or len(key) > LONGEST_NAME:
                left_out.append(visible(f"{within}{key[:100]}").replace("\n", " "))
            elif key not in kept:
                # Beyond 64 bits a database rounds; as text the digits stay.
                kept[key] = str(value) if type(value) is int and abs(value) >= 2**63 else value
    return kept, tuple(left_out)


def _is_short_scalar(value: Any, longest: int) -> bool:
    match value:
        case str():
            return len(value) <= longest
        case int():
            return bool(abs(value) < 10**longest)
        case _:
            return isinstance(value, float)


def _id_from_content(trace: Trace, format_name: str) -> str:
    """The same row always gets the same id, so a second import of the file adds nothing."""
    when = trace.timestamp.isoformat() if trace.timestamp else ""
    parts = (trace.content_hash(), when, trace.operation or "", trace.group or "")
    digest = hashlib.blake2b("\x00".join(parts).encode(), digest_size=12).hexdigest()
    return f"{format_name}-{digest}"
