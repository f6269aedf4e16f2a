"""Turn a file's row into a checked trace with its labels.

Written by hand rather than with a schema library, because imports of a million traces run through here.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calibrate.ingest.base import Rejected, Row
from calibrate.ingest.stated_scores import scores_of
from calibrate.ingest.values import (
    MAX_ID_LENGTH,
    MAX_NAME_LENGTH,
    FieldError,
    check_tree,
    expected,
    finite,
    name_or_none,
    text_or_none,
    utc,
)
from calibrate.ingest.verdicts import labels_of
from calibrate.redaction import Redactor
from calibrate.sanitize import visible
from calibrate.settings import ImportSettings
from calibrate.types import Record, Source, StatedScore, Token, Trace

MAX_ATTRIBUTE_LENGTH = 1000
MAX_EXTRA_LENGTH = 200
"""Longest texts that become attributes, in characters. Attributes are for filtering and grouping, not for reading."""

LIMITS = ImportSettings()

Scalar = str | int | float | bool | None

RECORD_FIELDS = frozenset(
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
        "scores",
    )
)
"""The fields that have a meaning. Any other scalar becomes an attribute."""


def build(
    row: Row, *, format_name: str, limits: ImportSettings = LIMITS, redactor: Redactor | None = None
) -> Record | Rejected:
    """Build the record of a row, or say why it is rejected. A row without an id gets one from its content.

    Two rows without an id and with the same content, time, operation and group are one trace. What the redactor
    replaces is in nothing that is returned, ids made from the content included.
    """
    redacted: Mapping[str, int] = {}
    try:
        trace, left_out = _build_trace(row.fields)
        _check_size(trace, limits)
        labels = (*labels_of(row.fields, trace), *row.labels)
        scores, no_scores = scores_of(row.fields.get("scores"), trace.id)
        left_out += (*no_scores, *row.left_out)
        if redactor is not None:
            trace, labels, redacted = redactor.redact(trace, labels)
            left_out = tuple([redactor.redact_text(name) for name in left_out])
    except FieldError as error:
        # The message may quote the file, and it goes to a terminal.
        reason = str(error) if redactor is None else redactor.redact_text(str(error))
        return Rejected(row.line, visible(reason).replace("\n", " "))
    if not trace.id:
        trace = replace(trace, id=_id_from_content(trace, format_name))
        labels = tuple(replace(label, trace_id=trace.id) for label in labels)
    if scores:
        scores = tuple([(name, _named(score, trace.id, redactor)) for name, score in scores])
    return Record(row.line, trace, labels, row.size, row.repaired, left_out, redacted, scores)


def _named(score: StatedScore, trace_id: str, redactor: Redactor | None) -> StatedScore:
    """The score under the id that its trace has in the store, with its reason redacted as the trace is."""
    reason = redactor.redact_text(score.reason) if redactor is not None and score.reason else score.reason
    return StatedScore(trace_id, score.value, reason)


def _check_size(trace: Trace, limits: ImportSettings) -> None:
    """Refuse a trace so large that every detector would take many seconds over it."""
    if len(trace.sources) > limits.sources:
        raise FieldError(
            f"sources: {len(trace.sources):,} of them, at most {limits.sources:,} are taken; split the trace, or raise "
            "TOUCHSTONE_MAX_SOURCES"
        )
    size = len(trace.answer) + len(trace.question or "") + len(trace.context or "")
    size += sum([len(source.text) for source in trace.sources]) + sum([len(text) for text in trace.alternatives])
    if size > limits.characters:
        raise FieldError(
            f"{size:,} characters of text, at most {limits.characters:,} are taken; split the trace, or raise "
            "TOUCHSTONE_MAX_TRACE_MB"
        )


def _build_trace(fields: dict[str, Any]) -> tuple[Trace, tuple[str, ...]]:
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
    attributes, left_out = _collect_attributes(fields, extra or {})
    trace = Trace(
        id=name_or_none(get("id") if trace_id is None else trace_id, "trace_id", MAX_ID_LENGTH) or "",
        answer=answer,
        question=text_or_none(get("question"), "question"),
        context=text_or_none(get("context"), "context"),
        sources=_parse_sources(get("sources")),
        tokens=_parse_tokens(get("tokens")),
        alternatives=_parse_alternatives(get("samples") if alternatives is None else alternatives),
        schema=schema,
        timestamp=utc(get("timestamp")),
        model=name_or_none(get("model"), "model", MAX_NAME_LENGTH),
        operation=name_or_none(get("operation"), "operation", MAX_NAME_LENGTH),
        group=_find_group(fields, extra or {}),
        attributes=attributes,
    )
    return trace, left_out


def _parse_sources(value: Any) -> tuple[Source, ...]:
    """Parse `{number: text or object}`, or a list of texts or objects, numbered from 1 unless they have a number."""
    if not value and (value is None or isinstance(value, (dict, list))):
        return ()
    if isinstance(value, dict):
        return tuple([_parse_source(number, item) for number, item in value.items()])
    if isinstance(value, list):
        sources = tuple(
            [_parse_source(_source_number(item) or str(at), item) for at, item in enumerate(value, start=1)]
        )
        if len({source.number for source in sources}) < len(sources):
            raise FieldError("sources: two of them have the same number")
        return sources
    raise expected("sources", "an object {number: text} or a list", value)


def _source_number(item: Any) -> str | None:
    return name_or_none(item.get("number"), "sources: number", MAX_NAME_LENGTH) if isinstance(item, dict) else None


def _parse_source(number: str, item: Any) -> Source:
    if len(number) > MAX_NAME_LENGTH:
        raise FieldError(f"sources: a number of {len(number):,} characters, at most {MAX_NAME_LENGTH} are possible")
    if isinstance(item, str):
        return Source(number, item)
    if not isinstance(item, dict):
        raise expected(f"sources[{number}]", "text or an object with text", item)
    get = item.get
    text, title, score = get("text"), get("title"), get("retrieval_score")
    # Names are formatted only for an error: this runs for every passage of every trace.
    if not isinstance(text, str):
        if text is not None or score is None:
            raise expected(f"sources[{number}].text", "text", text)
        text = ""  # some retrievers log only the score of what they retrieved
    if title is not None and not isinstance(title, str):
        raise expected(f"sources[{number}].title", "text or null", title)
    if score is not None and not (type(score) is float and -math.inf < score < math.inf):
        score = finite(score, f"sources[{number}].retrieval_score")
    return Source(number, text, title, score)


def _parse_tokens(value: Any) -> tuple[Token, ...] | None:
    if value is None or value == []:
        return None
    if not isinstance(value, list):
        raise expected("tokens", "a list", value)
    return tuple([_parse_token(at, item) for at, item in enumerate(value)])


def _parse_token(at: int, item: Any) -> Token:
    if not isinstance(item, dict):
        raise expected(f"tokens[{at}]", "an object with token and logprob", item)
    get = item.get
    text, logprob, top = get("token"), get("logprob"), get("top_logprobs")
    if not isinstance(text, str):
        raise expected(f"tokens[{at}].token", "text", text)
    if not (type(logprob) is float and -math.inf < logprob < math.inf):
        logprob = finite(logprob, f"tokens[{at}].logprob")
    return Token(text, logprob, _parse_top_logprobs(top, f"tokens[{at}].top_logprobs") if top else ())


def _parse_top_logprobs(value: Any, name: str) -> tuple[tuple[str, float], ...]:
    """Parse `[{token, logprob}]`, as OpenAI writes it, or `{token: logprob}`."""
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


def _parse_alternatives(value: Any) -> tuple[str, ...]:
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


def _find_group(fields: dict[str, Any], extra: dict[str, Any]) -> str | None:
    """Find the group of traces that share their sources: `group`, or the id of the source within its dataset."""
    group = name_or_none(fields.get("group"), "group", MAX_ID_LENGTH)
    if group is not None:
        return group
    # RAGTruth numbers every response in source_id and the passages they share in source_group.
    source = extra.get("source_group")
    source_id = name_or_none(fields.get("source_id") if source is None else source, "source_id", MAX_ID_LENGTH)
    dataset = fields.get("dataset")
    if source_id is None or not isinstance(dataset, str) or not dataset:
        return source_id
    return name_or_none(f"{dataset}/{source_id}", "dataset and source_id", MAX_ID_LENGTH)


def _collect_attributes(fields: dict[str, Any], extra: dict[str, Any]) -> tuple[dict[str, Scalar], tuple[str, ...]]:
    """Collect the scalars that belong to no field, and the names of values that are left out.

    Where a key occurs twice, `attributes` outranks a field, and a field outranks `extra`.
    """
    declared = fields.get("attributes")
    if declared is not None and not isinstance(declared, dict):
        raise expected("attributes", "an object", declared)
    attributes: dict[str, Scalar] = {}
    left_out: list[str] = []
    unknown = {key: value for key, value in fields.items() if key not in RECORD_FIELDS}
    for prefix, values, longest in (
        ("attributes.", declared or {}, MAX_ATTRIBUTE_LENGTH),
        ("", unknown, MAX_ATTRIBUTE_LENGTH),
        ("extra.", extra, MAX_EXTRA_LENGTH),
    ):
        for key, value in values.items():
            if value is None:
                continue
            if isinstance(value, float) and not math.isfinite(value):
                raise FieldError(f"{prefix}{key[:100]}: a number out of range")
            if not _is_short_scalar(value, longest) or len(key) > MAX_NAME_LENGTH:
                left_out.append(visible(f"{prefix}{key[:100]}").replace("\n", " "))
            elif key not in attributes:
                # Databases round integers beyond 64 bits; text keeps the digits.
                attributes[key] = str(value) if type(value) is int and abs(value) >= 2**63 else value
    return attributes, tuple(left_out)


def _is_short_scalar(value: Any, longest: int) -> bool:
    match value:
        case str():
            return len(value) <= longest
        case int():
            return bool(abs(value) < 10**longest)
        case _:
            return isinstance(value, float)


def _id_from_content(trace: Trace, format_name: str) -> str:
    """Derive an id from the content: the same row always gets the same id, so importing a file twice adds nothing."""
    when = trace.timestamp.isoformat() if trace.timestamp else ""
    parts = (trace.content_hash(), when, trace.operation or "", trace.group or "")
    digest = hashlib.blake2b("\x00".join(parts).encode(), digest_size=12).hexdigest()
    return f"{format_name}-{digest}"
