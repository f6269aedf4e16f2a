"""Rows to dataclasses and back. Only this module knows the columns of a trace."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, select

from calibrate.types import (
    Evidence,
    Label,
    Sample,
    SampleOptions,
    Score,
    Source,
    Span,
    Token,
    Trace,
    TraceFilter,
    Usage,
)
from db.tables import DrawnRow, SourceRow, TextRow, TraceRow, table

TRACE_COLUMNS = table(TraceRow)


def digest(text: str) -> bytes:
    """The key of a text that traces share: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def as_text(value: object) -> str:
    """An attribute's value as it is stored and compared: booleans and numbers as JSON writes them."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def digests(traces: Sequence[Trace]) -> dict[str, bytes]:
    """The key of every shared text of these traces; each distinct text is digested once."""
    texts = {source.text for trace in traces for source in trace.sources}
    texts.update(trace.context for trace in traces if trace.context)
    return {text: digest(text) for text in texts}


def trace_row(pk: int, trace: Trace, content_hash: str, keys: Mapping[str, bytes], now: datetime) -> dict[str, Any]:
    return {
        "id": pk,
        "trace_id": trace.id,
        "content_hash": content_hash,
        "timestamp": trace.timestamp,
        "model": trace.model,
        "operation": trace.operation,
        "source_group": trace.group,
        "question": trace.question,
        "answer": trace.answer,
        "context_digest": keys[trace.context] if trace.context else None,
        "tokens": [[t.text, t.logprob, t.top] for t in trace.tokens] if trace.tokens is not None else None,
        "alternatives": list(trace.alternatives) or None,
        # Boxed: a schema may be `false`, or anything else JSON has, and NULL must stay "no schema".
        "output_schema": None if trace.schema is None else [trace.schema],
        "attributes": {k: as_text(v) for k, v in trace.attributes.items() if v is not None} or None,
        "imported_at": now,
        "purged_at": None,
    }


def source_rows(pk: int, trace: Trace, keys: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [
        {
            "trace_pk": pk,
            "position": position,
            "number": source.number,
            "text_digest": keys[source.text],
            "title": source.title,
            "retrieval_score": source.retrieval_score,
        }
        for position, source in enumerate(trace.sources)
    ]


def load_traces(connection: Connection, pks: Sequence[int], *, as_logged: bool = False) -> list[tuple[int, Trace]]:
    """The traces with these keys, whole, in the order of the keys. Texts that several share are fetched once.

    With `as_logged`, alternatives that were drawn later are left out.
    """
    rows = {row["id"]: row for row in connection.execute(select(TRACE_COLUMNS).where(TraceRow.id.in_(pks))).mappings()}
    sources: dict[int, list[RowMapping]] = {}
    of_traces = select(table(SourceRow)).where(SourceRow.trace_pk.in_(pks))
    for source in connection.execute(of_traces.order_by(SourceRow.trace_pk, SourceRow.position)).mappings():
        sources.setdefault(source["trace_pk"], []).append(source)
    digests = {s["text_digest"] for group in sources.values() for s in group}
    digests |= {row["context_digest"] for row in rows.values() if row["context_digest"]}
    texts: dict[bytes, str] = {}
    for batch in batches(sorted(digests), 500):
        query = select(TextRow.digest, TextRow.text).where(TextRow.digest.in_(batch))
        texts.update((bytes(key), text) for key, text in connection.execute(query).tuples())
    drawn = _drawn(
        connection, {row["content_hash"] for row in rows.values() if not as_logged and not row["alternatives"]}
    )
    return [(pk, _trace(rows[pk], sources.get(pk, []), texts, drawn)) for pk in pks if pk in rows]


def _drawn(connection: Connection, hashes: Iterable[str]) -> dict[str, Sequence[str]]:
    """Alternatives that were drawn for contents that came without any."""
    drawn: dict[str, Sequence[str]] = {}
    for batch in batches(sorted(hashes), 500):
        query = select(DrawnRow.content_hash, DrawnRow.alternatives).where(DrawnRow.content_hash.in_(batch))
        drawn.update(connection.execute(query).tuples().all())
    return drawn


def _trace(
    row: RowMapping,
    sources: Sequence[RowMapping],
    texts: Mapping[bytes, str],
    drawn: Mapping[str, Sequence[str]],
) -> Trace:
    return Trace(
        id=row["trace_id"],
        answer=row["answer"],
        question=row["question"],
        context=texts[bytes(row["context_digest"])] if row["context_digest"] else None,
        sources=tuple(
            Source(s["number"], texts[bytes(s["text_digest"])], s["title"], s["retrieval_score"]) for s in sources
        ),
        tokens=None
        if row["tokens"] is None
        else tuple(Token(text, logprob, tuple((t, p) for t, p in top)) for text, logprob, top in row["tokens"]),
        alternatives=tuple(row["alternatives"] or drawn.get(row["content_hash"], ())),
        schema=row["output_schema"][0] if row["output_schema"] else None,
        timestamp=row["timestamp"],
        model=row["model"],
        operation=row["operation"],
        group=row["source_group"],
        attributes=row["attributes"] or {},
        purged_at=row["purged_at"],
    )


def label_of(**row: Any) -> Label:
    """From a row of labels, with its trace's id and its sample's name."""
    columns = {name: value for name, value in row.items() if name not in ("id", "trace_pk", "sample_id")}
    kinds, spans = tuple(row["kinds"] or ()), tuple(Span(*span) for span in row["spans"] or ())
    return Label(**{**columns, "kinds": kinds, "spans": spans})


def label_row(pk: int, label: Label, sample_id: int | None, now: datetime) -> dict[str, Any]:
    return {
        "trace_pk": pk,
        "labeller": label.labeller,
        "verdict": label.verdict,
        "kinds": list(label.kinds) or None,
        "spans": [[s.start, s.end, s.kind] for s in label.spans] or None,
        "note": label.note,
        "seconds": label.seconds,
        "sample_id": sample_id,
        "adjudicates": label.adjudicates,
        "created_at": label.created_at or now,
        "guide": label.guide,
    }


def sample_of(**row: Any) -> Sample:
    strata = {name: (population, drawn) for name, (population, drawn) in row["strata"].items()}
    where, options = TraceFilter.from_json(row["filter"]), SampleOptions.from_json(row["options"] or {})
    return Sample(**{**row, "filter": where, "strata": strata, "options": options})


def evidence_json(evidence: Iterable[Evidence]) -> list[Any] | None:
    return [[e.text, e.value, e.start, e.end, e.source, e.window] for e in evidence] or None


def score_of(row: RowMapping, trace_id: str) -> Score:
    usage, evidence = Usage(*row["usage"]) if row["usage"] else None, evidence_of(row["evidence"])
    return Score(trace_id, row["value"], row["reason"], row["status"], evidence, row["seconds"], usage)


def evidence_of(stored: list[Any] | None) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(text, value, start, end, source, tuple(window) if window else None)
        for text, value, start, end, source, window in stored or ()
    )


def usage_json(usage: Usage | None) -> list[Any] | None:
    return list(astuple(usage)) if usage else None


T = TypeVar("T")


def batches(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
