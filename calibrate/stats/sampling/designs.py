"""Designs of a sample: how many traces of which stratum, and how likely each was to be drawn. Arithmetic only."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from calibrate.errors import BadInput
from calibrate.types import Sample

# Those that give every trace of the window a chance; a fresh-flagged sample knows nothing of what was not flagged.
OF_ALL = ("random", "stratified", "octave", "uncertain")
DESIGNS = (*OF_ALL, "fresh-flagged")
# Of labels that were imported: what their user says of how the traces were chosen.
FLAGGED_ONLY, FEEDBACK = "flagged", "feedback"
PICKED = "picked"  # the stratum of a sample by feedback that grows trace by trace, as somebody picks them here
UNKNOWN = "unknown"  # what was stated is taken back
STATED = ("random", FLAGGED_ONLY, FEEDBACK)
# Fewer labels than this in a stratum say nothing about its spread.
AT_LEAST = 4
UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Cut:
    """A threshold, in the detector's units, of one stored detector configuration. Members of the samples `apart` (their
    keys) are not drawn again."""

    config_id: int
    threshold: float
    apart: tuple[int, ...] = ()


def speaks_for_all(sample: Sample) -> bool:
    """Whether a sample lets its traffic be estimated.

    Flagged traces alone do not, nor those chosen to be labelled twice, nor those that people picked.

    Parameters
    ----------
    sample : Sample
        Traces drawn for labelling.

    Returns
    -------
    bool
        False for one of flagged traces only, of feedback, or of nobody knows what.
    """
    return sample.design in OF_ALL


def must_speak_for_all(sample: Sample) -> None:
    """Refuse a sample that says nothing of what was missed.

    Parameters
    ----------
    sample : Sample
        Traces drawn for labelling.

    Raises
    ------
    BadInput
        For a sample that does not.
    """
    known_design(sample)
    if sample.design == UNKNOWN:
        raise BadInput(
            f"nobody says how the traces of the sample {sample.name!r} were chosen, so they speak for no traffic: say "
            f"it (`sample {sample.name!r} --state random|flagged|feedback`), or take another sample"
        )
    if sample.design in ("fresh-flagged", FLAGGED_ONLY):
        raise BadInput(
            f"the sample {sample.name!r} holds flagged traces only, so it says nothing of what was missed; take a "
            "sample of the whole traffic"
        )
    if sample.design == FEEDBACK:
        raise BadInput(
            f"the sample {sample.name!r} holds traces that people complained of or picked, so it says nothing of the "
            "rest; take a sample of the whole traffic"
        )


def known_design(sample: Sample) -> None:
    """Refuse a sample that this version does not know how to weight.

    Parameters
    ----------
    sample : Sample
        Traces drawn for labelling.

    Raises
    ------
    BadInput
        For a design of a newer version.
    """
    if sample.design not in (*DESIGNS, *STATED, UNKNOWN):
        raise BadInput(
            f"the sample {sample.name!r} was drawn by the design {sample.design!r}, whose inclusion probabilities this "
            f"version does not know, so nothing can be estimated from it: use a sample drawn by {', '.join(DESIGNS)}"
        )


def allocate(populations: Mapping[str, int], n: int, *, given: Mapping[str, int] | None = None) -> dict[str, int]:
    """How many of `n` labels each stratum gets, summing to n or to all there are.

    In proportion to the cube root of the stratum's population (docs/adr/0006), at least 4 each (all of a smaller one)
    and never more than there are; fractions go by largest remainder. When n is too small for 4 each, the labels are
    spread evenly, the larger strata first. The order of the mapping does not matter. `given` are labels that strata
    have already: part of the n, and never taken back.

    Parameters
    ----------
    populations : mapping of str to int
        Traces by stratum.
    n : int
        Labels to share out.
    given : mapping of str to int, optional
        Labels that each stratum has already; default: none.

    Returns
    -------
    dict of str to int
        Labels by stratum.
    """
    if n < 1:
        raise BadInput(f"a sample of {n} traces holds nothing: ask for at least 1")
    wrong = [name for name, population in populations.items() if population < 0]
    if wrong:
        raise BadInput(f"stratum {wrong[0]!r} has a population of {populations[wrong[0]]}: it cannot be below 0")
    # Large first, then by name: the order in which leftovers are given.
    names = sorted(populations, key=lambda name: (-populations[name], name))
    n = min(n, sum(populations.values()))
    have = {name: (given or {}).get(name, 0) for name in names}
    if sum(have.values()) > n or any(have[name] > populations[name] for name in names):
        raise BadInput(f"{sum(have.values())} labels are given already: more than {n}, or than a stratum holds")
    least = {name: max(have[name], min(AT_LEAST, populations[name])) for name in names}
    shares = (
        _spread_evenly(least, have, names, n) if sum(least.values()) >= n else _share_by_root(populations, least, n)
    )
    whole = {name: math.floor(shares[name] + 1e-9) for name in names}
    by_remainder = sorted(names, key=lambda name: whole[name] - shares[name])
    for name in by_remainder[: n - sum(whole.values())]:
        whole[name] += 1
    return {name: whole[name] for name in populations}


def draw_ranks(rng: np.random.Generator, population: int, n: int) -> NDArray[np.int64]:
    """`n` distinct ranks in 0..population-1, every set equally likely, in random order.

    Any first part of them is itself a random sample, so a half-labelled sample can be used. Memory grows with n as long
    as n is a small part of the population.

    Parameters
    ----------
    rng : Generator
        Source of the random draws.
    population : int
        How many there are.
    n : int
        How many to draw.

    Returns
    -------
    array of int, shape (n,)
        Ranks from 0, each once.

    Raises
    ------
    BadInput
        For more traces than there are.
    """
    if not 0 <= n <= population:
        raise BadInput(f"cannot draw {n} of {population} traces: ask for {population} at most")
    return rng.choice(population, size=n, replace=False, shuffle=True).astype(np.int64)


def count_prefix(gold: Sequence[str | None]) -> int:
    """How many members of a sample come before the first without a verdict: only these make its figures.

    Parameters
    ----------
    gold : sequence of str or None
        The verdict of every member in labelling order, None without one. "unsure" and "disputed" are verdicts.

    Returns
    -------
    int
        Members, 0 to `len(gold)`.
    """
    return gold.index(None) if None in gold else len(gold)


def default_name(now: datetime) -> str:
    """The ISO week of `now`: `2026-W47`. Its year is that of the week's Thursday, not always the calendar's.

    Parameters
    ----------
    now : datetime
        The present.

    Returns
    -------
    str
        Like "2026-W47".
    """
    year, week, _ = now.isocalendar()
    return f"{year}-W{week:02d}"


def parse_since(text: str) -> timedelta | datetime | None:
    """A window as a user writes it: `14d`, `12h` or `2w` back, `2026-11-01` (UTC), or `all` (None).

    Parameters
    ----------
    text : str
        As typed.

    Returns
    -------
    timedelta, datetime or None
        None for an empty text.

    Raises
    ------
    BadInput
        For a text that is neither.
    """
    compact = text.strip()
    if compact.lower() == "all":
        return None
    match = re.fullmatch(r"([0-9]{1,9})([hdw])", compact.lower())
    try:
        if match:
            back = timedelta(**{UNITS[match[2]]: int(match[1])})
            if not back:
                raise BadInput(f"a window of {text!r} holds nothing: write 14d, for instance")
            return back
        start = datetime.fromisoformat(compact)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"no window {text!r}: write 14d, 12h or 2w, a date such as 2026-11-01, or all") from error
    return start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)


def window_start(since: timedelta | datetime | None, now: datetime) -> datetime | None:
    """When the window begins; None when it has no beginning.

    Parameters
    ----------
    since : timedelta, datetime or None
        A time, or how long ago.
    now : datetime
        The present.

    Returns
    -------
    datetime or None
        None for no limit.
    """
    if not isinstance(since, timedelta):
        return since
    try:
        return now - since
    except OverflowError:
        # Longer ago than the calendar reaches.
        return None


def _spread_evenly(least: Mapping[str, int], have: Mapping[str, int], names: list[str], n: int) -> dict[str, float]:
    """One each, then two each, and so on in the order of `names`, never above `least`, until n are given."""
    out = dict(have)
    for level in range(1, AT_LEAST + 1):
        for name in names:
            if sum(out.values()) < n and out[name] < level <= least[name]:
                out[name] = level
    return {name: float(number) for name, number in out.items()}


def _share_by_root(populations: Mapping[str, int], least: Mapping[str, int], n: int) -> dict[str, float]:
    """rate x N_h^(1/3) between `least` and N_h, with the rate at which the shares sum to n."""

    def at(rate: float) -> dict[str, float]:
        return {name: min(max(rate * math.cbrt(size), least[name]), size) for name, size in populations.items()}

    # The sum grows with the rate; at N_h^(2/3) of the largest stratum it is everything. Bisect to the last digit.
    low, high = 0.0, max(populations.values()) ** (2 / 3) * (1 + 1e-9)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle).values()) < n else (low, middle)
    return at(high)
