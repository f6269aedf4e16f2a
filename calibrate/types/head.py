"""The head of the detector `learned`: what it reads of other detectors, and the numbers fitted to labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

TEXTS = ("version", "params", "revision")


@dataclass(frozen=True, slots=True)
class HeadFeature:
    """One statistic of a base detector's score and sentences: its mean and scale among the labels, and what one scale
    of it adds to the log odds."""

    statistic: str
    mean: float
    scale: float
    coefficient: float


@dataclass(frozen=True, slots=True)
class HeadBase:
    """A detector that the head reads, exactly as it was when the head was fitted. `missing` is what its absence adds to
    the log odds; its features count as their means then."""

    name: str
    version: str
    params: str  # JSON, sorted keys
    revision: str
    missing: float
    features: tuple[HeadFeature, ...]


@dataclass(frozen=True, slots=True)
class LearnedHead:
    """A logistic regression on base detectors, fitted to `n` labels, `positives` of them hallucinated."""

    bases: tuple[HeadBase, ...]
    intercept: float
    n: int
    positives: int
    label_set_digest: str
    fitted_at: datetime

    @property
    def digest(self) -> str:
        """Identifies the labels and the features it was fitted on, and the fit; not when that was."""
        content = {name: value for name, value in self.to_json().items() if name != "fitted_at"}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, float | str]:
        """Flat names and numbers or texts, as a thresholds file keeps them."""
        document: dict[str, float | str] = {
            "intercept": self.intercept,
            "n": self.n,
            "positives": self.positives,
            "label_set_digest": self.label_set_digest,
            "fitted_at": self.fitted_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        for base in self.bases:
            document |= {f"{base.name}/{part}": getattr(base, part) for part in (*TEXTS, "missing")}
            for feature in base.features:
                place = f"{base.name}/{feature.statistic}"
                document |= {f"{place}/{part}": getattr(feature, part) for part in ("mean", "scale", "coefficient")}
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> LearnedHead | None:
        """Read what `to_json` wrote; None for what is incomplete or no head."""
        try:
            return cls(
                tuple(_read_base(document, name) for name in _names(document)),
                float(document["intercept"]),
                int(document["n"]),
                int(document["positives"]),
                str(document["label_set_digest"]),
                datetime.fromisoformat(document["fitted_at"]),
            )
        except (KeyError, TypeError, ValueError):
            return None


def _names(document: Mapping[str, Any]) -> list[str]:
    suffix = "/revision"
    return sorted(name.removesuffix(suffix) for name in document if name.endswith(suffix))


def _read_base(document: Mapping[str, Any], base: str) -> HeadBase:
    suffix = "/coefficient"
    places = sorted(name for name in document if name.startswith(f"{base}/") and name.endswith(suffix))
    features = []
    for place in places:
        statistic = place.removesuffix(suffix).removeprefix(f"{base}/")
        mean, scale, coefficient = (
            float(document[f"{base}/{statistic}/{part}"]) for part in ("mean", "scale", "coefficient")
        )
        if not scale > 0:
            raise ValueError(f"{place}: a scale of {scale:g}")
        features.append(HeadFeature(statistic, mean, scale, coefficient))
    version, params, revision = (str(document[f"{base}/{part}"]) for part in TEXTS)
    return HeadBase(base, version, params, revision, float(document[f"{base}/missing"]), tuple(features))
