"""Score one trace by an ensemble's rule, read from its JSON, without numpy.

The same rules as `stats.ensembles.rules`; tests compare the two. `docs/reference/thresholds-file.md` specifies them for
other languages.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from calibrate.orientation import flags, reaches

Scores = Mapping[str, float]
"""Scores by detector, in its own units. A detector without a score is left out."""


def score(rule: Mapping[str, Any], scores: Scores) -> float:
    """Compute the rule's score of one trace.

    Parameters
    ----------
    rule : mapping
        An ensemble's rule as the thresholds file holds it.
    scores : mapping of str to float
        By detector, in its own units. Infinite ones count as missing, except against a fixed threshold.

    Returns
    -------
    float
        Higher is more suspicious. NaN if the arithmetic leaves the range of a float.
    """
    form = rule["form"]
    if form == "vote":
        return sorted(_suspicion(entry, scores.get(name)) for name, entry in rule["standings"].items())[-int(rule["k"])]
    if form == "fixed":
        return float(
            sum(
                name in scores and flags(scores[name], threshold, flag_when)
                for name, (flag_when, threshold) in rule["thresholds"].items()
            )
        )
    if form == "weighted":
        weights = rule["weights"]
        total = sum(weights[name] * _normal_score(entry, scores.get(name)) for name, entry in rule["standings"].items())
        return float(total / sum(map(abs, weights.values())))
    if form == "logistic":
        return _expit(
            rule["intercept"] + sum(_log_odds_term(entry, scores.get(name)) for name, entry in rule["inputs"].items())
        )
    last = scores.get(rule["expensive"])
    if _is_usable(last) and passes(rule, scores):
        return 1 + _suspicion(rule["standing"], last)
    return _expit(score(rule["filter"], scores))


def passes(cascade: Mapping[str, Any], scores: Scores) -> bool:
    """Tell whether a cascade runs its expensive detector on a trace.

    Parameters
    ----------
    cascade : mapping
        A rule of the form "cascade".
    scores : mapping of str to float
        By detector, in its own units.

    Returns
    -------
    bool
    """
    return cascade["pass_at"] is None or reaches(score(cascade["filter"], scores), cascade["pass_at"])


def _is_usable(score: float | None) -> bool:
    return score is not None and math.isfinite(score)


def _suspicion(standing: Mapping[str, Any], score: float | None) -> float:
    above = _interpolate(standing, score, standing["above"])
    return 0.0 if above is None else 1 - above


def _normal_score(standing: Mapping[str, Any], score: float | None) -> float:
    return _interpolate(standing, score, standing["normals"]) or 0.0


def _interpolate(standing: Mapping[str, Any], score: float | None, heights: list[float]) -> float | None:
    """Interpolate the heights at this score: linear between knots, constant beyond the ends. None for no score."""
    knots = standing["knots"]
    if score is None or not math.isfinite(score) or not knots:
        return None
    x = score if standing["flag_when"] == "above" else -score
    right = bisect_right(knots, x)
    if right == 0 or right == len(knots):
        return float(heights[max(right - 1, 0)])
    left = right - 1
    return float(heights[left] + (x - knots[left]) / (knots[right] - knots[left]) * (heights[right] - heights[left]))


def _log_odds_term(term: Mapping[str, Any], score: float | None) -> float:
    """Compute what one detector adds to the log odds."""
    if score is None or not math.isfinite(score):
        return float(term["missing"])
    z = (score - term["centre"]) / term["spread"]
    return float(term["slope"] * (z if term["flag_when"] == "above" else -z))


def _expit(x: float) -> float:
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    small = math.exp(x)
    return small / (1 + small)
