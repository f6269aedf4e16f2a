"""Baselines that detectors normalise by, in the thresholds file: model → detector → statistic and part → number.

{"gpt-4o-2026-08": {"entropy_z": {"entropy/top_decile/top5/centre": 0.31, "entropy/top_decile/top5/spread": 0.08, …
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from calibrate.thresholds.fields import format_time, to_utc
from calibrate.types import Baseline

Baselines = Mapping[tuple[str, str], Baseline]
"""By (statistic, model), as in `calibrate.workspace`."""


def to_json(baselines: Baselines, detector: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Build the part of a document's `baselines` that belongs to one detector."""
    document: dict[str, dict[str, dict[str, Any]]] = {}
    for (statistic, model), baseline in sorted(baselines.items()):
        parts = {
            "centre": baseline.centre,
            "spread": baseline.spread,
            "n": baseline.n,
            "fitted_at": format_time(to_utc(baseline.fitted_at)),
        }
        statistics = document.setdefault(model, {}).setdefault(detector, {})
        statistics |= {f"{statistic}/{part}": value for part, value in parts.items()}
    return document


def from_json(document: Mapping[str, Any]) -> dict[tuple[str, str], Baseline]:
    """Read a document's `baselines`. Incomplete ones are left out: the detector abstains then."""
    baselines = {}
    for model, detectors in document.items():
        for parts in detectors.values():
            for statistic in {name.rpartition("/")[0] for name in parts}:
                baseline = _read_baseline(statistic, model, parts)
                if baseline is not None:
                    baselines[statistic, model] = baseline
    return baselines


def _read_baseline(statistic: str, model: str, parts: Mapping[str, Any]) -> Baseline | None:
    try:
        centre, spread, n = (float(parts[f"{statistic}/{part}"]) for part in ("centre", "spread", "n"))
        fitted_at = datetime.fromisoformat(parts[f"{statistic}/fitted_at"])
    except (KeyError, TypeError, ValueError):
        return None
    return Baseline(statistic, model, centre, spread, int(n), fitted_at) if spread > 0 else None
