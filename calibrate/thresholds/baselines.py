"""What detectors were fitted to, in the thresholds file: model → detector → statistic and part → number or text.

{"gpt-4o-2026-08": {"entropy_z": {"entropy/top_decile/top5/centre": 0.31, "entropy/top_decile/top5/spread": 0.08, …
{"*": {"learned": {"intercept": -1.2, "rouge_l/worst/coefficient": -0.4, … : a head belongs to no single model.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from calibrate.thresholds.fields import format_time, to_utc
from calibrate.types import Baseline, LearnedHead

Baselines = Mapping[tuple[str, str], Baseline]
"""By (statistic, model), as in `calibrate.workspace`."""
EVERY_MODEL = "*"
HEAD_OF = "learned"  # the detector


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


def head_to_json(head: LearnedHead) -> dict[str, dict[str, dict[str, Any]]]:
    """Build the part of a document's `baselines` that is the head of `learned`."""
    return {EVERY_MODEL: {HEAD_OF: dict(head.to_json())}}


def head_from_json(document: Mapping[str, Any]) -> LearnedHead | None:
    """Read the head of `learned` in a document's `baselines`; None where there is none, or an incomplete one."""
    parts = document.get(EVERY_MODEL, {}).get(HEAD_OF)
    return LearnedHead.from_json(parts) if parts else None


def _read_baseline(statistic: str, model: str, parts: Mapping[str, Any]) -> Baseline | None:
    try:
        centre, spread, n = (float(parts[f"{statistic}/{part}"]) for part in ("centre", "spread", "n"))
        fitted_at = datetime.fromisoformat(parts[f"{statistic}/fitted_at"])
    except (KeyError, TypeError, ValueError):
        return None
    return Baseline(statistic, model, centre, spread, int(n), fitted_at) if spread > 0 else None
