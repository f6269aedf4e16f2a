"""The prevalence without labels: where the truth is known, and against the likelihood that it maximises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calibrate.errors import BadInput
from calibrate.stats.fitting.prevalence import estimate_prevalence

MU, PRIOR = 1.5, 0.1


def mapped(share: float, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities by a map that is right for a tenth, and the likelihood ratios they hold."""
    rng = np.random.default_rng(seed)
    z = np.where(rng.random(n) < share, MU, 0.0) + rng.standard_normal(n)
    ratio = np.exp(MU * z - MU**2 / 2)
    return PRIOR * ratio / (PRIOR * ratio + 1 - PRIOR), ratio


@pytest.mark.parametrize("share", [0.03, 0.1, 0.3])
def test_it_maximises_the_likelihood_of_the_mixture(share: float) -> None:
    p, ratio = mapped(share, 3000)
    best = minimize_scalar(
        lambda s: -np.log(s * ratio + 1 - s).sum(), bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-9}
    ).x
    found = estimate_prevalence(p, PRIOR)
    assert found.value == pytest.approx(best, abs=1e-4)
    assert found.settled
    assert found.value == pytest.approx(share, abs=0.04)


def test_missing_scores_are_left_out_and_nothing_is_refused() -> None:
    p, _ = mapped(0.1, 500)
    assert estimate_prevalence(np.append(p, [np.nan] * 7), PRIOR) == estimate_prevalence(p, PRIOR)
    for bad in ([], [np.nan], [1.2]):
        with pytest.raises(BadInput, match="probabilities"):
            estimate_prevalence(bad, PRIOR)
    with pytest.raises(BadInput, match="prior"):
        estimate_prevalence(p, 0.0)


def test_certain_maps_settle_at_the_share_of_certain_ones() -> None:
    assert estimate_prevalence([1.0] * 3 + [0.0] * 7, 0.2).value == pytest.approx(0.3)
