"""What a release does against the live one, in sentences."""

from __future__ import annotations

from calibrate.report.names import title_of
from calibrate.report.numbers import about, count, interval, labelled, share
from calibrate.stats.intervals.flag_differences import Paired
from calibrate.types import Interval
from calibrate.workflow.releasing.impact import DetectorImpact, Impact, Unknown
from calibrate.workflow.releasing.regression_guard import Check, NotRun


def summary(impact: Impact) -> str:
    """Say what changes a day: "v8 pages 12 more a day than v7 and in all tiers finds 9 more hallucinations a day"."""
    if impact.flags is None or impact.pages is None:
        why = _unknown(impact.unknown) if impact.unknown else ""
        return f"How many more or fewer v{impact.new} flags a day than v{impact.old} is unknown: {why}."
    labels = f"Both on the same {labelled(impact.flags.n, impact.flags.positives)}"
    if impact.per_day is None:
        first, second = (share(side.flag_rate) for side in (impact.flags.first, impact.flags.second))
        rates = f"v{impact.new} flags {second} of traffic, v{impact.old} {first}"
        return f"{rates}; how many a day is unknown: the traces carry no time. {labels}."
    paging = impact.pages.first.flagged + impact.pages.second.flagged > 0
    verb, moved = ("pages", impact.pages) if paging else ("flags", impact.flags)
    flags = change(_daily(moved.flag_rate, impact.per_day), "a day")
    than = "as" if flags.startswith("as many") else "than"
    of_all = "in all tiers " if paging else ""
    hits = change(_daily(impact.flags.caught, impact.per_day), "hallucinations a day", bounds=True)
    return (
        f"v{impact.new} {verb} {flags} {than} v{impact.old} and {of_all}finds {hits}. "
        f"{labels}, at {about(impact.per_day)} traces a day."
    )


def a_day(impact: Impact) -> list[tuple[str, str, str]]:
    """Name what changes a day, before and after, and the difference with its 95% interval: "Flags a day", "24 → 36",
    "12 more a day (8–17)". Nothing where that is unknown."""
    if impact.flags is None or impact.per_day is None:
        return []
    first, second = impact.flags.first, impact.flags.second
    per_day = impact.per_day
    moved = f"{_amount(first.flag_rate * per_day)} → {_amount(second.flag_rate * per_day)}"
    lines = [("Flags a day", moved, change(_daily(impact.flags.flag_rate, per_day), "a day", bounds=True))]
    hits = [side.flag_rate * (side.precision or 0.0) * per_day for side in (first, second)]
    apart = change(_daily(impact.flags.caught, per_day), "a day", bounds=True)
    return [*lines, ("Hallucinations found a day", f"{_amount(hits[0])} → {_amount(hits[1])}", apart)]


def _unknown(unknown: Unknown) -> str:
    if unknown.reason == "not run":
        asks = f"v{unknown.version} asks {title_of(unknown.detector or '')}"
        return f"{asks}, which has no scores of these labels as it was released"
    if unknown.reason == "samples differ":
        return "its points were chosen on different samples"
    return unknown.error or "its points share no labels"


def change(figure: Interval, unit: str, *, bounds: bool = False) -> str:
    """Write a difference a day: "12 more a day", "9 more hallucinations a day (4–15)", "as many a day"."""
    assert figure.value is not None
    noun = unit.removesuffix("a day").strip()
    if round(figure.value, 1) == 0:
        return f"as many {noun + ' ' if noun else ''}a day"
    text = f"{_amount(figure.value)} {'more' if figure.value > 0 else 'fewer'} {unit}"
    if not bounds or figure.low is None or figure.high is None:
        return text
    low, high = sorted((abs(figure.low), abs(figure.high)))
    if figure.low >= 0 or figure.high <= 0:
        return f"{text} ({_amount(low)}–{_amount(high)})"
    return f"{text} (between {_amount(figure.low)} fewer and {_amount(figure.high)} more)"


def _amount(a_day: float) -> str:
    """How many a day, to a tenth at most: "260", "0.5"."""
    return about(round(abs(a_day), 1))


def _daily(rate: Interval, per_day: float) -> Interval:
    return Interval(*(None if bound is None else bound * per_day for bound in (rate.value, rate.low, rate.high)))


def detector(row: DetectorImpact) -> str:
    """Describe one detector before and after: "ROUGE-L: flags at ≤ 0.75 (was ≤ 0.6667), precision 63% of …".

    In tier off it flags nothing by itself; an ensemble may read it.
    """
    if row.after is None:
        return f"{title_of(row.detector)} leaves"
    before, after = (side(row, new=new) for new in (False, True))
    limit = "flags nothing by itself in tier off, its point is at {}" if row.after.tier == "off" else "flags at {}"
    parts = [
        words.format(now) + (f" (was {was})" if row.before and was != now else "")
        for words, was, now in zip((limit, "precision {}", "recall {}", "{} flags a day"), before, after, strict=True)
    ]
    pair = row.check.paired if row.check else None
    labels = f"; both on {count(pair.n, 'label')}" if pair else ""
    return f"{title_of(row.detector)}{'' if row.before else ' comes in'}: {', '.join(parts)}{labels}"


def side(row: DetectorImpact, *, new: bool) -> tuple[str, str, str, str]:
    """Limit, precision, recall and flags a day before or after; on the labels that both share, where they do."""
    entry, daily = (row.after, row.flags_after) if new else (row.before, row.flags_before)
    if entry is None:
        return ("", "", "", "")
    a_day = "unknown" if daily is None else about(daily)
    pair: Paired | None = row.check.paired if row.check else None
    if pair is None:
        return entry.limits, share(entry.metrics.precision.value), share(entry.metrics.recall.value), a_day
    figures = pair.second if new else pair.first
    precision = "unknown (flags none)"
    if figures.flagged:
        precision = f"{share(figures.precision)} of {count(figures.flagged)} flagged"
    return entry.limits, precision, share(figures.recall), a_day


def worse(check: Check) -> str:
    """Say what fell by more than chance."""
    assert check.paired is not None
    losses = [
        f"{loss.figure} {share(loss.after)} instead of {share(loss.before)} "
        f"({interval(loss.least, loss.most, unit='')} points less)"
        for loss in check.losses
    ]
    labels = count(check.paired.n, "label")
    return f"{title_of(check.detector)} is worse than in v{check.of} on the same {labels}: {' and '.join(losses)}"


def missing(check: Check) -> str:
    """Say why a detector cannot be compared with the live release, and how it could be."""
    name = title_of(check.detector)
    if not isinstance(check.missing, NotRun):
        return f"{name} cannot be compared with v{check.of}: {check.missing}"
    entry = check.missing.entry
    text = f"{name} cannot be compared with v{check.of} on the same labels: it was not run on them as it was released"
    if check.missing.version != entry.version:
        here = f"this Touchstone has version {check.missing.version}, which scores otherwise"
        return f"{text} (version {entry.version}; {here})"
    usual = check.missing.usual
    params = [f"--param {key}={value}" for key, value in sorted(entry.params.items()) if usual.get(key) != value]
    models = f", with the models of then ({entry.revision})" if not check.missing.stored and entry.revision else ""
    return f"{text}. `{' '.join(['detect', check.detector, '--labelled', *params])}` makes them{models}"
