"""What detectors normalise by, as the thresholds file has it: model → detector → statistic and part → number.

{"gpt-4o-2026-08": {"entropy_z": {"entropy/top_decile/top5/centre": 0.31, "entropy/top_decile/top5/spread": 0.08, …
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from calibrate.thresholds.fields import text, utc
from calibrate.types import Baseline

Baselines = Mapping[tuple[str, str], Baseline]
"""By (statistic, model), as `calibrate.workspace` keeps them."""


def to_json(baselines: Baselines, detector: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The part of a document's `baselines` that is this detector's."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for (statistic, model), one in sorted(baselines.items()):
        parts = {"centre": one.centre, "spread": one.spread, "n": one.n, "fitted_at": text(utc(one.fitted_at))}
        ours = found.setdefault(model, {}).setdefault(detector, {})
        ours |= {f"{statistic}/{part}": value for part, value in parts.items()}
    return found


def from_json(document: Mapping[str, Any]) -> dict[tuple[str, str], Baseline]:
    """All that a document has under `baselines`. What is not whole is left out: the detector then abstains."""
    found = {}
    for model, detectors in document.items():
        for parts in detectors.values():
            for statistic in {name.rpartition("/")[0] for name in parts}:
                made = _baseline(statistic, model, parts)
                if made is not None:
                    found[statistic, model] = made
    return found


def _baseline(statistic: str, model: str, parts: Mapping[str, Any]) -> Baseline | None:
    try:
        centre, spread, n = (float(parts[f"{statistic}/{part}"]) for part in ("centre", "spread", "n"))
        fitted_at = datetime.fromisoformat(parts[f"{statistic}/fitted_at"])
    except (KeyError, TypeError, ValueError):
        return None
    return Baseline(statistic, model, centre, spread, int(n), fitted_at) if spread > 0 else None
