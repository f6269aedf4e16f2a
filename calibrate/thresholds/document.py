"""The JSON document of a release. It says what the dataclasses say: `from_json(to_json(file)) == file`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from calibrate.thresholds.canonical import digest_of
from calibrate.thresholds.checks import FORMAT, check
from calibrate.thresholds.model import Data, DetectorEntry, Metrics, ThresholdsFile, Window
from calibrate.types import Interval


def to_json(file: ThresholdsFile) -> dict[str, Any]:
    """The document, digest included. It is not checked here: `checks.check` and every write do that."""
    data = file.data
    document = {
        "touchstone_thresholds": FORMAT,
        "version": file.version,
        "released_at": _text(file.released_at),
        "released_by": file.released_by,
        "note": file.note,
        "replaces": file.replaces,
        "detectors": {name: _entry_to_json(entry) for name, entry in file.detectors.items()},
        "data": {
            "sample": data.sample,
            "design": data.design,
            "label_set_digest": data.label_set_digest,
            "n": data.n,
            "positives": data.positives,
            "window": data.window and {"since": _text(data.window.since), "until": _text(data.window.until)},
            "models": list(data.models),
            **data.extra,
        },
        "baselines": dict(file.baselines),
        **file.extra,
    }
    return {**document, "digest": digest_of(document)}


def from_json(document: Any, name: str = "thresholds file") -> ThresholdsFile:
    """The release a document holds. Raises BadThresholds, naming it, unless the document is whole and unchanged."""
    check(document, name)
    data = document["data"]
    window = data["window"] and Window(_time(data["window"]["since"]), _time(data["window"]["until"]))
    return ThresholdsFile(
        version=int(document["version"]),  # 3.0 is an integer in JSON
        released_at=datetime.fromisoformat(document["released_at"]),
        released_by=document["released_by"],
        note=document["note"],
        replaces=None if document["replaces"] is None else int(document["replaces"]),
        detectors={name: _entry_from_json(entry) for name, entry in document["detectors"].items()},
        data=Data(
            sample=data["sample"],
            design=data["design"],
            label_set_digest=data["label_set_digest"],
            n=int(data["n"]),
            positives=int(data["positives"]),
            window=window,
            models=tuple(data["models"]),
            extra=_extra(data),
        ),
        baselines=document["baselines"],
        extra=_extra(document),
    )


def _entry_to_json(entry: DetectorEntry) -> dict[str, Any]:
    metrics = entry.metrics
    figures = {name: getattr(metrics, name) for name in ("precision", "recall", "fpr", "flag_rate")}
    return {
        "version": entry.version,
        "params": dict(entry.params),
        "revision": entry.revision,
        "flag_when": entry.flag_when,
        "threshold": entry.threshold,
        "tier": entry.tier,
        "policy": entry.policy,
        "metrics": {
            **{name: _figure(interval) for name, interval in figures.items()},
            "n": metrics.n,
            "positives": metrics.positives,
            "confidence": _float(metrics.confidence),
        },
        "coverage": _float(entry.coverage),
        "feasible": entry.feasible,
        **entry.extra,
    }


def _entry_from_json(entry: Mapping[str, Any]) -> DetectorEntry:
    measured = entry["metrics"]
    figures = {
        name: Interval(*(_float(measured[name][end]) for end in ("value", "low", "high")))
        for name in ("precision", "recall", "fpr", "flag_rate")
    }
    counts = {"n": int(measured["n"]), "positives": int(measured["positives"])}
    metrics = Metrics(**figures, **counts, confidence=float(measured["confidence"]))  # type: ignore[arg-type]
    names = ("version", "params", "revision", "flag_when", "threshold", "tier", "policy", "feasible")
    known = {name: entry[name] for name in names}
    return DetectorEntry(**known, metrics=metrics, coverage=float(entry["coverage"]), extra=_extra(entry))


def _figure(interval: Interval) -> dict[str, float | None]:
    return {"value": _float(interval.value), "low": _float(interval.low), "high": _float(interval.high)}


def _extra(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key.startswith("x-")}


def _float(value: float | None) -> float | None:
    return None if value is None else float(value) + 0.0


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
