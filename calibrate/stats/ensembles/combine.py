"""How each kind of ensemble is made from labelled traces and the traffic they stand for.

Only `logistic` looks at labels. All else (ranks, means, cuts) is read from the traffic, which needs none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.ensembles.budget_cuts import cut_at_budget
from calibrate.stats.ensembles.rules import (  # fmt: skip
    Cascade,
    Fixed,
    Input,
    Logistic,
    Rule,
    Vote,
    Weighted,
)
from calibrate.stats.ensembles.training_data import TrainingData, scored
from calibrate.stats.fitting.ridge import fit_ridge
from calibrate.stats.sweep.design import Floats

Kind = Literal["k_of_n", "logistic", "cascade"]
KINDS: tuple[Kind, ...] = ("k_of_n", "logistic", "cascade")
C = 0.3
FEW = 10
"""Hallucinated labels below which a logistic fit chases noise: the mean of rank-normal scores takes its place."""
PASS = 0.3


@dataclass(frozen=True)
class Recipe:
    """What ensemble to make. `k` and `thresholds` are for k_of_n: how many detectors must flag (1: any), each at
    its own threshold (default: an equal share of the traffic each). A cascade asks `expensive` about the share
    `pass_share` of the traffic."""

    kind: Kind
    k: int = 2
    thresholds: Mapping[str, float] = field(default_factory=dict)
    expensive: str = ""
    pass_share: float = PASS


def build_rule(recipe: Recipe, training: TrainingData) -> Rule:
    """The ensemble this recipe makes of these traces.

    Parameters
    ----------
    recipe : Recipe
        What ensemble to build.
    training : TrainingData
        Labelled traces beside the traffic they stand for.

    Returns
    -------
    Rule
        Frozen numbers that score a trace.

    Raises
    ------
    BadInput
        Where it cannot be built.
    """
    names, n = training.names, len(training.names)
    if recipe.kind == "k_of_n":
        k = recipe.k
        if not 1 <= k <= n:
            raise BadInput(f"{k} of {n} detectors cannot flag: choose k from 1 to {n}")
        if recipe.thresholds:
            return Fixed(k, {name: (training.flag_when[name], recipe.thresholds[name]) for name in names})
        return Vote(k, training.standings)
    if recipe.kind == "cascade":
        return cascade(training, recipe.expensive, pass_share=recipe.pass_share)
    return logistic(training) if training.positives >= FEW else mean_rank(training)


def mean_rank(training: TrainingData) -> Weighted:
    """The mean of the detectors' rank-normal scores, which is fitted to no label.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.

    Returns
    -------
    Weighted
        Equal weights.
    """
    return Weighted(dict.fromkeys(training.names, 1.0), training.standings)


def cascade(training: TrainingData, expensive: str, *, pass_share: float) -> Cascade:
    """Ask an expensive detector about a share of the traffic only.

    The mean rank-normal score of the other detectors says which.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    expensive : str
        The detector that is asked last.
    pass_share : float
        The share of the traffic it is asked about, above 0 and up to 1.

    Returns
    -------
    Cascade
        The rule.

    Raises
    ------
    BadInput
        For one detector only, a share out of range, and a filter too coarse for it.
    """
    if expensive not in training.names or len(training.names) < 2:
        raise BadInput("a cascade needs a cheap detector and an expensive one: name at least two")
    if not 0 < pass_share <= 1:
        raise BadInput(f"a cascade that passes {pass_share:g} of the traffic: give a share above 0, up to 1")
    rule = cascade_or_none(training, expensive, pass_share=pass_share)
    if rule is None:
        raise BadInput(
            f"the filter cannot pick {pass_share:.0%} of the traffic: more than that shares its most suspicious score; "
            "let more pass, or choose other cheap detectors"
        )
    return rule


def cascade_or_none(training: TrainingData, expensive: str, *, pass_share: float) -> Cascade | None:
    """A cascade, or None where more than its share of the traffic has the filter's most suspicious score.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    expensive : str
        The detector that is asked last.
    pass_share : float
        The share of the traffic it is asked about, above 0 and up to 1.

    Returns
    -------
    Cascade or None
        The rule, if the filter can pick out such a share.
    """
    first = mean_rank(training.select([name for name in training.names if name != expensive]))
    pass_at = None
    if pass_share < 1:
        pass_at = cut_at_budget(first.score(training.traffic), training.traffic_weights, budget=pass_share)
        if pass_at is None:
            return None
    return Cascade(first, pass_at, expensive, training.standings[expensive])


def logistic(training: TrainingData, *, c: float = C) -> Logistic:
    """A weighted ridge logistic on standardised scores, with an indicator for each detector that misses some.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.
    c : float
        Prior variance of a coefficient, as scikit-learn's C.

    Returns
    -------
    Logistic
        Coefficients in the detectors' units.
    """
    inputs = inputs_of(training)
    design = design_matrix(training.scores, inputs, has_gaps(training))
    fitted = fit_ridge(design, training.labels.astype(np.float64), training.weights / training.weights.mean(), c=c)
    return _with_coefficients(inputs, has_gaps(training), fitted.coefficients)


def inputs_of(training: TrainingData) -> dict[str, Input]:
    """Centre and spread of each detector in the traffic.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.

    Returns
    -------
    dict of str to Input
        By detector, without coefficients.
    """
    inputs = {}
    for name in training.names:
        values, weights = scored(training.traffic[name], training.traffic_weights)
        centre = float(np.average(values, weights=weights)) if len(values) else 0.0
        spread = float(np.sqrt(np.average((values - centre) ** 2, weights=weights))) if len(values) else 0.0
        # Scores that do not differ tell nothing: they are 0 whatever they are divided by.
        wide = spread > 1e-12 * max(1.0, abs(centre))
        inputs[name] = Input(training.flag_when[name], centre, spread if wide else 1.0)
    return inputs


def has_gaps(training: TrainingData) -> tuple[str, ...]:
    """The detectors that miss a score, among labels or traffic.

    Parameters
    ----------
    training : TrainingData
        Labelled traces beside the traffic they stand for.

    Returns
    -------
    tuple of str
        Names in alphabetical order.
    """
    both = (training.scores, training.traffic)
    return tuple(name for name in training.names if any(not np.isfinite(columns[name]).all() for columns in both))


def design_matrix(scores: Mapping[str, Floats], inputs: Mapping[str, Input], gaps: Sequence[str]) -> Floats:
    """z of every detector, then 1 where it is missing for each of `gaps`; shape (traces, features).

    Parameters
    ----------
    scores : mapping of str to array of float, shape (traces,)
        By detector, NaN for none.
    inputs : mapping of str to Input
        Centre and spread of each.
    gaps : sequence of str
        Detectors that get an indicator of a missing score.

    Returns
    -------
    array of float, shape (traces, features)
        Features.
    """
    columns = [inputs[name].z(scores[name]) for name in sorted(inputs)]
    columns += [(~np.isfinite(scores[name])).astype(np.float64) for name in gaps]
    return np.column_stack(columns)


def _with_coefficients(inputs: Mapping[str, Input], gaps: Sequence[str], coefficients: Floats) -> Logistic:
    names = sorted(inputs)
    slopes = dict(zip(names, coefficients[1:], strict=False))
    missing = dict(zip(gaps, coefficients[1 + len(names) :], strict=True))
    return Logistic(
        float(coefficients[0]),
        {
            name: replace(inputs[name], slope=float(slopes[name]), missing=float(missing.get(name, 0.0)))
            for name in names
        },
    )
