"""The values of a label by name, as JSON lines and CSV have them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from calibrate.ingest.values import (
    MAX_ID_LENGTH,
    MAX_NAME_LENGTH,
    FieldError,
    expected,
    finite,
    name_or_none,
    repair,
    text_or_none,
    utc,
)
from calibrate.ingest.verdicts import as_spans, as_verdict
from calibrate.types import Label


def build_label(fields: dict[str, Any]) -> Label:
    """Check the named values of one label. A field `label` counts as `verdict`; a missing labeller becomes ""."""
    trace_id = name_or_none(fields.get("trace_id"), "trace_id", MAX_ID_LENGTH)
    if trace_id is None:
        raise FieldError("trace_id: missing")
    verdict = fields.get("verdict") if fields.get("verdict") is not None else fields.get("label")
    if verdict is None:
        raise FieldError("verdict: missing")
    return Label(
        trace_id=trace_id,
        labeller=name_or_none(fields.get("labeller"), "labeller", MAX_NAME_LENGTH) or "",
        verdict=as_verdict(verdict, "verdict"),
        kinds=parse_kinds(fields.get("kinds")),
        spans=as_spans(fields.get("spans"), None),
        note=text_or_none(fields.get("note"), "note"),
        seconds=parse_seconds(fields.get("seconds")),
        created_at=parse_time(fields.get("created_at")),
        sample=name_or_none(fields.get("sample"), "sample", MAX_NAME_LENGTH),
        adjudicates=_parse_bool(fields.get("adjudicates"), "adjudicates"),
        guide=_parse_version(fields.get("guide")),
    )


def _parse_version(value: Any) -> int | None:
    """Read a version of the labelling guide. Missing means that nobody knows it."""
    if value is None:
        return None
    version = finite(value, "guide")
    if version < 0 or version != int(version) or version >= 2**31:
        raise expected("guide", "a version of the labelling guide, like 3", value)
    return int(version)


def _parse_bool(value: Any, field: str) -> bool:
    """Read a boolean, or true or false in a CSV cell in any case. Missing means False."""
    flag = {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else value
    if value is None or isinstance(flag, bool):
        return bool(flag)
    raise expected(field, "true or false", value)


def parse_kinds(value: Any, name: str = "kinds") -> tuple[str, ...]:
    """Read a list of kinds of error, each once. Any name is one: which kinds there are is the team's to say."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise expected(name, "a list", value)
    kinds = [kind.strip() if isinstance(kind, str) else None for kind in value]
    for kind, given in zip(kinds, value, strict=True):
        if not kind:
            raise expected(name, "names of kinds", given)
        name_or_none(kind, name, MAX_NAME_LENGTH)
    return tuple(dict.fromkeys(kind for kind in kinds if kind))


def parse_seconds(value: Any, name: str = "seconds") -> float | None:
    """Read how long a label took. Missing means None."""
    if value is None:
        return None
    seconds = finite(value, name)
    if seconds < 0:
        raise FieldError(f"{name}: {seconds:g} is less than 0")
    return seconds


def parse_time(value: Any) -> datetime | None:
    """Read when a label was made."""
    try:
        return utc(value)
    except FieldError as error:
        raise FieldError(str(error).replace("timestamp", "created_at", 1)) from None


def label_fields(label: Label) -> dict[str, Any]:
    """Name the values of a label as our own files do."""
    fields = {
        "trace_id": label.trace_id,
        "labeller": label.labeller,
        "verdict": label.verdict,
        "kinds": list(label.kinds),
        "note": label.note,
        "seconds": label.seconds,
        "created_at": label.created_at.isoformat() if label.created_at else None,
        "sample": label.sample,
        "spans": [{"start": span.start, "end": span.end, "type": span.kind} for span in label.spans],
        "adjudicates": label.adjudicates or None,
        "guide": label.guide,
    }
    return {name: repair(value).value for name, value in fields.items()}
