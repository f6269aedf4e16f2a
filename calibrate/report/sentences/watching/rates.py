"""How often the application hallucinated week by week, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count, estimate, interval, points, share
from calibrate.report.sentences.labelling.labels import caution
from calibrate.report.sentences.watching import models
from calibrate.report.sentences.watching.models import NO_DIFFERENCE
from calibrate.sanitize import one_line, visible
from calibrate.stats.sampling.designs import default_name
from calibrate.workflow.week.rates import Rates, Series, WeekRate, start_of


def name_of(week: WeekRate) -> str:
    """The week's name, as samples have it: "2026-W47"."""
    return default_name(start_of(week.monday))


def figures(week: WeekRate) -> str:
    """Say what a week's labels tell: "34% (26–44%) hallucinated · 43 labels · 31–38% with 3 undecided settled"."""
    parts = [f"{estimate(week.rate.value, week.rate.low, week.rate.high)} hallucinated", count(week.labels, "label")]
    if week.settled is not None:
        parts.append(f"{interval(week.settled.low, week.settled.high)} with {week.undecided} undecided settled")
    return " · ".join(parts)


def newest(series: Series) -> str:
    """Say how the newest week differs from the one before it that has labels, and whether the labels show it."""
    measured = [week for week in series.weeks if week.labels]
    if not measured:
        return "No label of these weeks is definite yet."
    last = measured[-1]
    now = f"{name_of(last)}: {estimate(last.rate.value, last.rate.low, last.rate.high)} hallucinated"
    if series.change is None:
        return f"{now}." if series.value is not None else f"{now}. There is no earlier week to compare with."
    before, change = measured[-2], series.change
    moved = points(change.value, change.low, change.high)
    shown = change.low is not None and change.high is not None and change.low * change.high > 0
    against = f"against {'its own ' if series.value is not None else ''}{share(before.rate.value)}"
    return f"{now}; {moved} {against} in {name_of(before)}{'' if shown else f': {NO_DIFFERENCE}'}."


def comparison(rates: Rates) -> str | None:
    """Say whether the newest value hallucinates less than the one before it; None where neither is newer."""
    return None if rates.step is None else one_line(models.step(rates.step), 500)


def remarks(rates: Rates) -> list[str]:
    """Say what the rates leave out, and where none can be had, why."""
    if rates.caution is not None:
        return [f"{caution(rates.caution)}."]
    parts = []
    if not rates.series:
        parts.append("No week has a label that counts yet: label this week's sample.")
    if rates.beyond:
        values = count(rates.beyond, "value")
        parts.append(f"{values} of {visible(rates.by, 60)}, in use earlier or with fewer labels, are left out.")
    if rates.undated:
        parts.append(f"{count(rates.undated, 'label')} of traces without a time are of no week.")
    return parts
