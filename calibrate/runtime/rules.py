"""Ensembles in production: the rules of stats.ensembles.rules for one trace, read from their JSON, without numpy.

`docs/reference/thresholds-file.md` says the same for other languages; tests hold the two implementations together.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from calibrate.orientation import flags, reaches

Scores = Mapping[str, float]
"""Detector -> its score; one without a score is not there."""


def score(rule: Mapping[str, Any], scores: Scores) -> float:
    """The rule's score, higher is more suspicious; NaN where the arithmetic leaves the range of a float. A missing
    score has its place in every rule; an infinite one counts as missing, but where it meets a threshold."""
    form = rule["form"]
    if form == "vote":
        return sorted(_suspicion(one, scores.get(name)) for name, one in rule["standings"].items())[-int(rule["k"])]
    if form == "fixed":
        return float(sum(name in scores and flags(scores[name], at, w) for name, (w, at) in rule["thresholds"].items()))
    if form == "weighted":
        weights = rule["weights"]
        total = sum(weights[name] * _normal(one, scores.get(name)) for name, one in rule["standings"].items())
        return float(total / sum(map(abs, weights.values())))
    if form == "logistic":
        return _expit(rule["intercept"] + sum(_part(one, scores.get(name)) for name, one in rule["inputs"].items()))
    last = scores.get(rule["expensive"])
    if _known(last) and passes(rule, scores):
        return 1 + _suspicion(rule["standing"], last)
    return _expit(score(rule["filter"], scores))


def passes(cascade: Mapping[str, Any], scores: Scores) -> bool:
    """Whether a cascade asks its expensive detector about the trace with these scores."""
    return cascade["pass_at"] is None or reaches(score(cascade["filter"], scores), cascade["pass_at"])


def _known(score: float | None) -> bool:
    return score is not None and math.isfinite(score)


def _suspicion(standing: Mapping[str, Any], score: float | None) -> float:
    above = _between(standing, score, standing["above"])
    return 0.0 if above is None else 1 - above


def _normal(standing: Mapping[str, Any], score: float | None) -> float:
    return _between(standing, score, standing["normals"]) or 0.0


def _between(standing: Mapping[str, Any], score: float | None, heights: list[float]) -> float | None:
    """The height at this score: a straight line between two knots, level beyond the ends. None for no score."""
    knots = standing["knots"]
    if score is None or not math.isfinite(score) or not knots:
        return None
    x = score if standing["flag_when"] == "above" else -score
    right = bisect_right(knots, x)
    if right == 0 or right == len(knots):
        return float(heights[max(right - 1, 0)])
    left = right - 1
    return float(heights[left] + (x - knots[left]) / (knots[right] - knots[left]) * (heights[right] - heights[left]))


def _part(one: Mapping[str, Any], score: float | None) -> float:
    """What one detector adds to the log odds."""
    if score is None or not math.isfinite(score):
        return float(one["missing"])
    z = (score - one["centre"]) / one["spread"]
    return float(one["slope"] * (z if one["flag_when"] == "above" else -z))


def _expit(x: float) -> float:
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    small = math.exp(x)
    return small / (1 + small)
