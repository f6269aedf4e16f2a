"""Write an answer as a span of OTLP that holds nothing but `touchstone.*` attributes: `Reader` reads the same again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from calibrate.ingest.spans.content import OWN_FIELDS
from calibrate.ingest.spans.dialects.genai import EVALUATION

SCOPE = "touchstone.hand_over"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES = frozenset(OWN_FIELDS) | {"timestamp", "scores"}


def span_of_record(record: Mapping[str, Any], *, trace_id: str, span_id: str) -> dict[str, Any]:
    """Write one answer as a span.

    The span is a trace of its own, so that nothing of another answer can be read into it, and a link leads to the LLM
    span. What names it is made from that span's ids: sent twice, it is one.

    Parameters
    ----------
    record : mapping
        An answer as a record of a trace file, as `row_of` writes it.
    trace_id, span_id : str
        Of the LLM span.

    Returns
    -------
    dict
        In OTLP's JSON.

    Raises
    ------
    ValueError
        For a record without an answer or an id, and one with fields that a span cannot hold.
    TypeError
        For a value that JSON does not have.
    """
    if unknown := sorted(set(record) - _NAMES):
        raise ValueError(f"no field {', '.join(unknown)} can be handed over")
    for name in ("answer", "trace_id"):
        if not isinstance(record.get(name), str) or not record[name].strip():
            raise ValueError(f"{name} is no text")
    digest = hashlib.blake2b(f"{trace_id}-{span_id}".encode(), digest_size=24).hexdigest()
    started = _nanoseconds(record.get("timestamp"))
    given = {name: record[name] for name in OWN_FIELDS if record.get(name) is not None}
    return {
        "traceId": digest[:32],
        "spanId": digest[32:],
        "name": "answer",
        "startTimeUnixNano": started,
        "endTimeUnixNano": started,
        "attributes": [_attribute(f"touchstone.{name}", value) for name, value in given.items()],
        "events": [_event(score, started) for score in record.get("scores") or ()],
        "links": [{"traceId": trace_id, "spanId": span_id}],
    }


def document_of(spans: Iterable[Mapping[str, Any]]) -> bytes:
    """Write spans as the body of a request in JSON.

    Parameters
    ----------
    spans : iterable of mapping
        Of `span_of_record`.

    Returns
    -------
    bytes
    """
    document = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": SCOPE}, "spans": list(spans)}]}]}
    return _to_json(document).encode("utf-8", "replace")


def _nanoseconds(moment: datetime | None) -> str:
    return "0" if moment is None else str((moment - _EPOCH) // timedelta(microseconds=1) * 1000)


def _attribute(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, bool):  # a schema may be one
        return {"key": key, "value": {"boolValue": value}}
    text = value if isinstance(value, str) else _to_json(value)
    return {"key": key, "value": {"stringValue": text}}


def _event(score: Mapping[str, Any], at: str) -> dict[str, Any]:
    attributes = [_attribute("gen_ai.evaluation.name", score["name"])]
    attributes.append({"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": float(score["value"])}})
    if score.get("reason"):
        attributes.append(_attribute("gen_ai.evaluation.explanation", score["reason"]))
    return {"name": EVALUATION, "timeUnixNano": at, "attributes": attributes}


def _to_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")
