"""How long this team takes for a label, and how many traces fit into the time that people have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.errors import BadInput
from db import Store
from db.labelling.times import LabelTime

ASSUMED = 30.0  # seconds a label, where too few were timed: one answer read against three short passages
ENOUGH = 10  # timed labels
NEWEST = 200
LONGEST = 600.0  # seconds; a longer pause is not labelling
MOST_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class Pace:
    """Active seconds for one label, on average over the newest timed `labels` of `labellers` people; with no labels it
    is assumed. The mean, not the median: what is to be known is how long many labels take together."""

    seconds: float
    labels: int = 0
    labellers: int = 0

    @property
    def is_measured(self) -> bool:
        return self.labels > 0


def team_pace(store: Store) -> Pace:
    """The pace of whoever labelled last; an assumed one until ten labels are timed."""
    return _pace_of(store.times.newest(NEWEST)) or Pace(ASSUMED)


def pace_of_each(store: Store) -> dict[str, Pace]:
    """The pace of each labeller with ten timed labels or more."""
    times: dict[str, list[LabelTime]] = defaultdict(list)
    for time in store.times.newest(NEWEST * 50):
        if len(times[time.labeller]) < NEWEST:
            times[time.labeller].append(time)
    paces = {who: _pace_of(theirs) for who, theirs in sorted(times.items())}
    return {who: pace for who, pace in paces.items() if pace is not None}


def traces_for(pace: Pace, minutes: float, *, people: int = 1, overlap: float | None = None) -> int:
    """How many traces people label in the time that each of them has.

    Parameters
    ----------
    pace
        How long one label takes.
    minutes
        The time of each person.
    people
        How many share the traces.
    overlap
        The share of the traces that two people label; None where everyone labels all, so that more people bring no
        more traces.

    Returns
    -------
    Traces, at least 1.

    Raises
    ------
    BadInput
        For no time, more than a day, or nobody.
    """
    if not 0 < minutes <= MOST_MINUTES:
        raise BadInput(f"{minutes:g} minutes are no time to label in: give 1 to {MOST_MINUTES:,}, like 60")
    if people < 1:
        raise BadInput(f"{people} people label nothing: name at least one")
    labels = 60 * minutes / pace.seconds
    return max(1, int(labels if overlap is None else labels * people / (1 + (overlap if people > 1 else 0.0))))


def _pace_of(times: Sequence[LabelTime]) -> Pace | None:
    if len(times) < ENOUGH:
        return None
    seconds = sum(min(time.seconds, LONGEST) for time in times) / len(times)
    return Pace(max(1.0, seconds), len(times), len({time.labeller for time in times}))
