"""`baselines`: fit or list what each model's clean answers look like to entropy_z."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from calibrate.cli import Answer
from calibrate.cli.common import now, open_store
from calibrate.cli.output import table
from calibrate.report import numbers
from calibrate.report.sentences.watching import models
from calibrate.sanitize import visible
from calibrate.stats.fitting.baselines import ENOUGH
from calibrate.types import Baseline
from calibrate.workflow.detection import baselines as step


@dataclass(frozen=True, slots=True)
class BaselineDocument:
    statistic: str
    model: str
    centre: float
    spread: float
    n: int
    fitted_at: datetime
    age_days: float


@dataclass(frozen=True, slots=True)
class Skipped:
    """A model, or one statistic of it, that got no baseline."""

    model: str
    statistic: str | None
    why: str


@dataclass(frozen=True)
class BaselinesDocument:
    baselines: Sequence[BaselineDocument]


@dataclass(frozen=True)
class FittedDocument(BaselinesDocument):
    fitted: int
    skipped: Sequence[Skipped]


def run(args: Namespace) -> Answer:
    store = open_store(args)
    at = now()
    fit = step.fit(store, at) if args.action == "fit" else None
    current = [baseline for _, baseline in sorted(store.baselines.current().items(), key=lambda item: item[0][::-1])]
    documents = [_document(baseline, at) for baseline in current]
    lines = [_table(current, at)] if current else ["no baselines: label clean traces, then `baselines fit`"]
    if fit is None:
        return Answer(BaselinesDocument(documents), "\n".join(lines))
    skipped = [Skipped(row.model, row.statistic, models.skipped(row)) for row in fit.skipped]
    lines.insert(0, f"{numbers.count(len(fit.fitted), 'baseline')} fitted, {len(skipped)} not")
    lines += [f"  {visible(row.model, 80)}, {row.statistic or 'all'}: {row.why}" for row in skipped]
    return Answer(FittedDocument(documents, len(fit.fitted), skipped), "\n".join(lines))


def _document(baseline: Baseline, at: datetime) -> BaselineDocument:
    return BaselineDocument(
        statistic=baseline.statistic,
        model=baseline.model,
        centre=baseline.centre,
        spread=baseline.spread,
        n=baseline.n,
        fitted_at=baseline.fitted_at,
        age_days=round(step.age(baseline, at).total_seconds() / 86400, 2),
    )


def _table(baselines: Sequence[Baseline], at: datetime) -> str:
    rows = [("model", "statistic", "centre", "spread", "n", "age", "")]
    for baseline in baselines:
        rough = f"rough: {ENOUGH} clean answers or more are better" if baseline.n < ENOUGH else ""
        figures = (numbers.decimals(baseline.centre), numbers.decimals(baseline.spread), numbers.count(baseline.n))
        days = numbers.count(step.age(baseline, at).days, "day")
        rows.append((visible(baseline.model, 60), baseline.statistic, *figures, days, rough))
    return table(rows, right=(2, 3, 4, 5))
