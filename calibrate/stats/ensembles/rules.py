"""Several detectors as one decision: frozen rules that score a trace from its detectors' scores.

A rule holds everything a runtime needs, numbers only, and is total: a missing score has its place in every rule, so
that whatever the detectors could not score, there is an answer. Higher is more suspicious; a trace is flagged where
the rule's score reaches a cut, which is not part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrate.errors import BadInput
from calibrate.orientation import flags, reaches, suspicion
from calibrate.stats.fitting.ridge import expit
from calibrate.stats.sweep.design import Bools, Floats
from calibrate.types import FlagWhen

Scores = Mapping[str, ArrayLike]
"""Detector -> its scores in its own units, one per trace; NaN, None or no entry where it has none."""


@dataclass(frozen=True)
class Standing:
    """Where a detector's score stands in the traffic, read between knots of the traffic's own scores.

    `knots` are oriented scores (negated where it flags below), ascending. At each, `above` is the share of all traffic
    that is more suspicious, half of the ties counted, and `normals` the normal quantile of the place among what has a
    score.
    """

    flag_when: FlagWhen
    knots: tuple[float, ...]
    above: tuple[float, ...]
    normals: tuple[float, ...]

    def suspicion(self, scores: Floats) -> Floats:
        """The share of all traffic that is less suspicious or has no score, 0 to 1; 0 for a missing score."""
        return self._read(scores, 1 - np.array(self.above))

    def normal(self, scores: Floats) -> Floats:
        """The rank-normal score: the traffic has mean 0 and spread 1. 0, the middle, for a missing score."""
        return self._read(scores, np.array(self.normals))

    def threshold(self, share: float) -> float | None:
        """The score, in the detector's units, from which on a trace is more suspicious than `share`, 0 to 1, of the
        traffic; None when none ever is."""
        heights = 1 - np.array(self.above)
        if not len(heights) or share > heights[-1]:
            return None
        return suspicion(float(np.interp(share, heights, self.knots)), self.flag_when)

    def _read(self, scores: Floats, heights: Floats) -> Floats:
        if not self.knots:
            return np.zeros(len(scores))
        read = np.interp(suspicion(scores, self.flag_when), self.knots, heights)
        return np.where(np.isfinite(scores), read, 0.0)


@dataclass(frozen=True)
class Vote:
    """At least `k` detectors flag, each at an equal share of the traffic: the k-th highest suspicion. 0 to 1."""

    form: ClassVar[str] = "vote"
    k: int
    standings: Mapping[str, Standing]

    @property
    def detectors(self) -> tuple[str, ...]:
        return tuple(sorted(self.standings))

    def score(self, scores: Scores) -> Floats:
        columns = _columns_of(scores, self.detectors)
        each = np.stack([self.standings[name].suspicion(columns[name]) for name in self.detectors])
        return np.asarray(np.sort(each, axis=0)[-self.k])


@dataclass(frozen=True)
class Fixed:
    """At least `k` detectors flag, each at its own threshold: how many flag. A missing score never does."""

    form: ClassVar[str] = "fixed"
    k: int
    thresholds: Mapping[str, tuple[FlagWhen, float]]

    @property
    def detectors(self) -> tuple[str, ...]:
        return tuple(sorted(self.thresholds))

    def score(self, scores: Scores) -> Floats:
        columns = _columns_of(scores, self.detectors)
        each = [flags(columns[name], at, side) for name, (side, at) in sorted(self.thresholds.items())]
        return np.asarray(np.sum(each, axis=0, dtype=np.float64))


@dataclass(frozen=True)
class Weighted:
    """The weighted mean of rank-normal scores; a missing score counts as the middle of the traffic."""

    form: ClassVar[str] = "weighted"
    weights: Mapping[str, float]
    standings: Mapping[str, Standing]

    @property
    def detectors(self) -> tuple[str, ...]:
        return tuple(sorted(self.standings))

    def score(self, scores: Scores) -> Floats:
        columns = _columns_of(scores, self.detectors)
        each = [self.weights[name] * self.standings[name].normal(columns[name]) for name in self.detectors]
        return np.asarray(np.sum(each, axis=0) / sum(abs(self.weights[name]) for name in self.detectors))


@dataclass(frozen=True)
class Input:
    """One detector of a logistic rule: z = sign x (score - centre) / spread, or `missing` in its place."""

    flag_when: FlagWhen
    centre: float
    spread: float
    slope: float = 0.0
    missing: float = 0.0

    def z(self, scores: Floats) -> Floats:
        z = suspicion((scores - self.centre) / self.spread, self.flag_when)
        return np.where(np.isfinite(scores), z, 0.0)


@dataclass(frozen=True)
class Logistic:
    """P(hallucinated) from standardised scores; a missing score has a coefficient of its own. 0 to 1."""

    form: ClassVar[str] = "logistic"
    intercept: float
    inputs: Mapping[str, Input]

    @property
    def detectors(self) -> tuple[str, ...]:
        return tuple(sorted(self.inputs))

    def score(self, scores: Scores) -> Floats:
        columns = _columns_of(scores, self.detectors)
        parts = [np.full(len(columns[self.detectors[0]]), self.intercept)]
        for name in self.detectors:
            member, values = self.inputs[name], columns[name]
            parts.append(np.where(np.isfinite(values), member.slope * member.z(values), member.missing))
        return expit(np.sum(parts, axis=0))


@dataclass(frozen=True)
class Cascade:
    """A cheap filter first; the expensive detector only on what passes. 0 to 2: below 1 the filter alone decided.

    A trace passes where the filter's score is at least `pass_at` (None: all pass). Where the expensive detector has no
    score, the filter's stands.
    """

    form: ClassVar[str] = "cascade"
    filter: Weighted
    pass_at: float | None
    expensive: str
    standing: Standing

    @property
    def detectors(self) -> tuple[str, ...]:
        return tuple(sorted({*self.filter.detectors, self.expensive}))

    def passes(self, scores: Scores) -> Bools:
        """Whether the expensive detector is asked."""
        first = self.filter.score({name: values for name, values in scores.items() if name in self.filter.detectors})
        return np.full(len(first), True) if self.pass_at is None else reaches(first, self.pass_at)

    def score(self, scores: Scores) -> Floats:
        columns = _columns_of(scores, self.detectors)
        last = columns[self.expensive]
        second = self.passes(columns) & np.isfinite(last)
        return np.where(second, 1 + self.standing.suspicion(last), expit(self.filter.score(columns)))


Rule = Vote | Fixed | Weighted | Logistic | Cascade


def _columns_of(scores: Scores, names: tuple[str, ...]) -> dict[str, Floats]:
    """One array per name, all of one length; NaN for what is not there. Raises BadInput for lengths that differ."""
    given = {name: np.atleast_1d(np.asarray(scores[name], dtype=np.float64)) for name in names if name in scores}
    lengths = {len(values) for values in given.values()}
    if len(lengths) > 1:
        raise BadInput(f"the detectors have {sorted(lengths)} scores: give one of each per trace, NaN for none")
    n = lengths.pop() if lengths else 1
    return {name: given.get(name, np.full(n, np.nan)) for name in names}


def to_json(rule: Rule) -> dict[str, Any]:
    """The rule as JSON can hold it; `from_json` gives the same rule back, to the last digit.

    Parameters
    ----------
    rule : Rule
        The ensemble.

    Returns
    -------
    dict
        Numbers, strings, lists and objects only.
    """
    document = {"form": rule.form, **asdict(rule)}
    if isinstance(rule, Cascade):
        document["filter"] = to_json(rule.filter)
    return document


def from_json(document: Mapping[str, Any]) -> Rule:
    """Read a rule back from JSON.

    Parameters
    ----------
    document : mapping
        What `to_json` gave.

    Returns
    -------
    Rule
        The same rule, to the last digit.

    Raises
    ------
    BadInput
        For what is no rule.
    """
    try:
        return _READERS[document["form"]]({key: value for key, value in document.items() if key != "form"})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"this is no ensemble ({error!r}): save it again on the Combine page") from error


def _standing(fields: Mapping[str, Any]) -> Standing:
    return Standing(fields["flag_when"], *(tuple(fields[name]) for name in ("knots", "above", "normals")))


def _standings(fields: Mapping[str, Any]) -> dict[str, Standing]:
    return {name: _standing(standing) for name, standing in fields["standings"].items()}


def _cascade(fields: Mapping[str, Any]) -> Cascade:
    first = from_json(fields["filter"])
    if not isinstance(first, Weighted):
        raise TypeError("the filter of a cascade is a weighted mean")
    return Cascade(first, fields["pass_at"], fields["expensive"], _standing(fields["standing"]))


_READERS: dict[str, Callable[[Mapping[str, Any]], Rule]] = {
    "vote": lambda fields: Vote(fields["k"], _standings(fields)),
    "fixed": lambda fields: Fixed(
        fields["k"], {name: (parts[0], parts[1]) for name, parts in fields["thresholds"].items()}
    ),
    "weighted": lambda fields: Weighted(dict(fields["weights"]), _standings(fields)),
    "logistic": lambda fields: Logistic(
        fields["intercept"], {name: Input(**parts) for name, parts in fields["inputs"].items()}
    ),
    "cascade": _cascade,
}
