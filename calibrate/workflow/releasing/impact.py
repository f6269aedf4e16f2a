"""What a release would do to the people who act on it: flags and pages a day, hallucinations found, against the live
one. Counted on the same gold labels, so both releases see the same week; unknown where traces carry no time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from calibrate.errors import UnknownDetector
from calibrate.report.sentences import figures as wording
from calibrate.runtime import decide
from calibrate.stats.intervals.flag_differences import Paired, compare_flags
from calibrate.stats.sweep.design import Floats
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.types import Interval
from calibrate.workflow.evidence import traffic
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.releasing import regression_guard
from db import Store
from db.releases import SavedPoint


@dataclass(frozen=True)
class Row:
    """One detector before and after; `before` None where it comes in, `after` where it leaves, `check` where there is
    nothing to compare. Flags a day are of the traffic that the new point's labels were drawn from, None where that is
    not known, and 0 in tier off."""

    detector: str
    before: DetectorEntry | None
    after: DetectorEntry | None
    check: regression_guard.Check | None
    flags_before: float | None
    flags_after: float | None


@dataclass(frozen=True)
class Impact:
    """The new release against the live one: by detector, and as a whole, paging and flagging, on `labels` that all
    their points share. Where no labels do, `pages` and `flags` are None and `unknown` says why."""

    old: int
    new: int
    rows: tuple[Row, ...]
    pages: Paired | None
    flags: Paired | None
    per_day: float | None
    unknown: str | None = None

    @property
    def worse(self) -> list[str]:
        """What needs a reason, a sentence each."""
        return [said for row in self.rows if row.check and (said := row.check.worse)]

    @property
    def missing(self) -> list[str]:
        """The comparisons that could not be made, and how they could be."""
        return [row.check.missing for row in self.rows if row.check and row.check.missing]

    @property
    def sentence(self) -> str:
        """v8 pages 12 more a day than v7 and in all tiers finds 9 more hallucinations a day (4–15)."""
        if self.flags is None or self.pages is None:
            return f"How many more or fewer v{self.new} flags a day than v{self.old} is unknown: {self.unknown}."
        labels = f"Both on the same {_count(self.flags.n, 'label')}, {self.flags.positives:,} of them hallucinated"
        if self.per_day is None:
            first, second = (share(one.flag_rate) for one in (self.flags.first, self.flags.second))
            rates = f"{second} of traffic, v{self.old} {first}"
            return f"v{self.new} flags {rates}; how many a day is unknown: the traces carry no time. {labels}."
        paging = self.pages.first.flagged + self.pages.second.flagged > 0
        moved = self.pages if paging else self.flags
        a_day = change(_daily(moved.flag_rate, self.per_day), "a day")
        than = "as" if a_day.startswith("as many") else "than"
        does = f"{'pages' if paging else 'flags'} {a_day} {than} v{self.old}"
        of_all = "in all tiers " if paging else ""
        finds = f"{of_all}finds {change(_daily(self.flags.caught, self.per_day), 'hallucinations a day', bounds=True)}"
        return f"v{self.new} {does} and {finds}. {labels}, at {number(self.per_day)} traces a day."


def impact(
    store: Store,
    before: ThresholdsFile,
    after: ThresholdsFile,
    points: Mapping[str, SavedPoint] | None = None,
) -> Impact:
    """`after`, a candidate of these points (None: the latest saved ones), against the live release `before`."""
    saved = store.points.latest() if points is None else points
    checks = {check.detector: check for check in regression_guard.checks(store, before, after, saved)}
    names = sorted({*before.detectors, *after.detectors})
    rows = tuple(_row(store, name, before, after, saved.get(name), checks.get(name)) for name in names)
    shared = _shared_labels(store, [saved[name] for name in sorted(after.detectors) if name in saved])
    if isinstance(shared, str):
        return Impact(before.version, after.version, rows, None, None, None, shared)
    data, per_day = shared, traffic.traffic_per_day(store, shared.sample)
    tiers = [_tiers(store, data, file) for file in (before, after)]
    for file, found in zip((before, after), tiers, strict=True):
        if isinstance(found, str):
            why = f"v{file.version} asks {found}, which has no scores of these labels as it was released"
            return Impact(before.version, after.version, rows, None, None, per_day, why)
    old, new = (np.asarray(one) for one in tiers)
    about = {"design": data.design, "groups": data.groups}
    pages = compare_flags(data.labels, old == "page", new == "page", **about)  # type: ignore[arg-type]
    flags = compare_flags(data.labels, old != "off", new != "off", **about)  # type: ignore[arg-type]
    return Impact(before.version, after.version, rows, pages, flags, per_day)


def change(figure: Interval, what: str, *, bounds: bool = False) -> str:
    """A difference a day as people say it: "12 more a day", "9 more hallucinations a day (4–15)", "as many a day"."""
    assert figure.value is not None
    word = "more" if figure.value > 0 else "fewer"
    same = round(figure.value, 1) == 0
    noun = what.removesuffix("a day").strip()
    said = f"as many {noun + ' ' if noun else ''}a day" if same else f"{number(figure.value)} {word} {what}"
    if not bounds or same or figure.low is None or figure.high is None:
        return said
    if figure.low >= 0 or figure.high <= 0:
        low, high = sorted(abs(bound) for bound in (figure.low, figure.high))
        return f"{said} ({number(low)}–{number(high)})"
    return f"{said} (between {number(figure.low)} fewer and {number(figure.high)} more)"


def said(row: Row) -> str:
    """One detector before and after, in a line: "rouge_l: flags at ≤ 0.75 (was ≤ 0.6667), precision 63% of …". In tier
    off it flags nothing by itself; an ensemble may read it."""
    if row.after is None:
        return f"{row.detector} leaves"
    then, now = (figures(row, new=new) for new in (False, True))
    limit = "flags nothing by itself in tier off, its point is at {}" if row.after.tier == "off" else "flags at {}"
    words = (limit, "precision {}", "recall {}", "{} flags a day")
    parts = [
        word.format(after) + (f" (was {before})" if row.before and before != after else "")
        for word, before, after in zip(words, then, now, strict=True)
    ]
    found = row.check.paired if row.check else None
    labels = f"; both on {_count(found.n, 'label')}" if found else ""
    return f"{row.detector}{'' if row.before else ' comes in'}: {', '.join(parts)}{labels}"


def figures(row: Row, *, new: bool) -> tuple[str, str, str, str]:
    """Limit, precision, recall and flags a day of one side of a row, as people say them; on the labels that both sides
    share, where they do."""
    entry, daily = (row.after, row.flags_after) if new else (row.before, row.flags_before)
    if entry is None:
        return ("", "", "", "")
    a_day = "unknown" if daily is None else number(daily)
    paired = row.check.paired if row.check else None
    if paired is None:
        return entry.limit, share(entry.metrics.precision.value), share(entry.metrics.recall.value), a_day
    there = paired.second if new else paired.first
    precision = f"{share(there.precision)} of {there.flagged:,} flagged" if there.flagged else "unknown (flags none)"
    return entry.limit, precision, share(there.recall), a_day


def share(value: float | None) -> str:
    """3.1%, 63%; "unknown" where it is."""
    return "unknown" if value is None else wording.percent(value)


def _daily(share: Interval, per_day: float) -> Interval:
    return Interval(*(None if one is None else one * per_day for one in (share.value, share.low, share.high)))


def number(value: float) -> str:
    """Two digits are all that an estimate is worth."""
    size = abs(value)
    if size < 9.95:
        return f"{size:.1f}".removesuffix(".0")
    digits = max(0, len(str(int(size))) - 2)
    return f"{round(size / 10**digits) * 10**digits:,}"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _row(
    store: Store,
    name: str,
    before: ThresholdsFile,
    after: ThresholdsFile,
    saved: SavedPoint | None,
    check: regression_guard.Check | None,
) -> Row:
    old, new = before.detectors.get(name), after.detectors.get(name)
    sample = next(iter(saved.data.samples), None) if saved and new else None
    per_day = traffic.traffic_per_day(store, store.samples.get(sample) if sample else None)
    if check and check.paired:
        rates = (check.paired.first.flag_rate, check.paired.second.flag_rate)
    else:
        rates = tuple(entry and entry.metrics.flag_rate.value for entry in (old, new))  # type: ignore[assignment]
    daily = [
        0.0 if entry and entry.tier == "off" else None if rate is None or per_day is None else rate * per_day
        for entry, rate in zip((old, new), rates, strict=True)
    ]
    return Row(name, old, new, check, *daily)


def _shared_labels(store: Store, points: list[SavedPoint]) -> Evidence | str:
    """The labels that all of these points were chosen on, beside the scores of the first; a sentence where there are
    none."""
    if len({point.data.samples for point in points}) != 1:
        return "its points were chosen on different samples"
    try:
        data = regression_guard.chosen_on(store, points[0])
    except UnknownDetector as error:
        return str(error)
    common = set.intersection(*({content for content, _ in point.data.labels} for point in points))
    data = replace(data, rows=tuple(row for row in data.rows if row.content_hash in common))
    return data if data.rows else "its points share no labels"


def _tiers(store: Store, data: Evidence, file: ThresholdsFile) -> list[str] | str:
    """What a release decides of every row; the name of the detector whose scores of them are not there."""
    scores: dict[str, Floats] = {}
    for rule in file.rules:
        found = regression_guard.scores_of(
            store, data, regression_guard.config_of(store, rule.detector, file.detectors[rule.detector])
        )
        if found is None:
            return rule.detector
        scores[rule.detector] = found
    return [
        decide(file, {name: float(values[place]) for name, values in scores.items()}).tier
        for place in range(len(data.rows))
    ]
