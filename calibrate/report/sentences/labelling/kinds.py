"""What a detector finds of each kind of error, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from calibrate.report.numbers import count, interval, share
from calibrate.sanitize import one_line
from calibrate.stats.labels.by_kind import KindRecall
from calibrate.workflow.evidence.kinds import KindFigures

MOST = 4  # kinds that a sentence names
NOTE = (
    "Shares are weighted as the sample was drawn, and speak of the labels that name a kind; an answer of several "
    "kinds counts in each"
)


def sentence(detector: str, figures: KindFigures, names: Mapping[str, str]) -> str | None:
    """ "Token overlap finds, by kind: fabrication 80% (12 of 15, 55–93%); …"; None where no label names a kind.

    `names` are what labellers read, by key.
    """
    named = [row for row in figures.kinds if row.kind is not None]
    if not named:
        return None
    return f"{detector} finds, by kind: {'; '.join(_parts(named, figures, names))}"


def _parts(named: list[KindRecall], figures: KindFigures, names: Mapping[str, str]) -> Iterator[str]:
    for row in named[:MOST]:
        bounds = interval(row.recall.low, row.recall.high)
        yield f"{name(row, names).lower()} {share(row.recall.value)} ({row.flagged} of {row.labels}, {bounds})"
    if len(named) > MOST:
        yield count(len(named) - MOST, "more kind")
    if figures.without:
        yield f"{figures.without} of {count(figures.hallucinated, 'hallucinated label')} name no kind"


def name(row: KindRecall, names: Mapping[str, str]) -> str:
    """What labellers read for a kind: "Wrong citation", "No kind"."""
    if row.kind is None:
        return "No kind"
    return one_line(names.get(row.kind, row.kind.replace("_", " ").capitalize()), 60)
