"""The verb about baselines."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import now, store, table
from calibrate.report.sentences.baselines import skipped
from calibrate.sanitize import visible
from calibrate.stats.fitting.baselines import ENOUGH
from calibrate.types import Baseline
from calibrate.workflow.detection import baselines as step


def run(args: Namespace) -> Answer:
    found = store(args)
    at = now()
    report = step.fit(found, at) if args.action == "fit" else None
    standing = [one for _, one in sorted(found.baselines.current().items(), key=lambda item: item[0][::-1])]
    document: dict[str, Any] = {"baselines": [_document(one, at) for one in standing]}
    lines = [_table(standing, at)] if standing else ["no baselines: label clean traces, then `baselines fit`"]
    if report is not None:
        document["fitted"] = len(report.fitted)
        document["skipped"] = [
            {"model": one.model, "statistic": one.statistic, "why": skipped(one)} for one in report.skipped
        ]
        lines.insert(0, f"{len(report.fitted)} baselines fitted, {len(report.skipped)} not")
        lines += [f"  {visible(one.model, 80)}, {one.statistic or 'all'}: {skipped(one)}" for one in report.skipped]
    return Answer(document, "\n".join(lines))


def _document(one: Baseline, at: datetime) -> dict[str, Any]:
    return {
        "statistic": one.statistic,
        "model": one.model,
        "centre": one.centre,
        "spread": one.spread,
        "n": one.n,
        "fitted_at": one.fitted_at.isoformat(),
        "age_days": round(step.age(one, at).total_seconds() / 86400, 2),
    }


def _table(standing: list[Baseline], at: datetime) -> str:
    rows = [("model", "statistic", "centre", "spread", "n", "age", "")]
    for one in standing:
        rough = f"rough: {ENOUGH} clean answers or more are better" if one.n < ENOUGH else ""
        days = f"{step.age(one, at).days} d"
        numbers = (f"{one.centre:.3f}", f"{one.spread:.3f}", f"{one.n:,}")
        rows.append((visible(one.model, 60), one.statistic, *numbers, days, rough))
    return table(rows, right=(2, 3, 4, 5))
