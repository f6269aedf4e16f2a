"""What a probability map is worth, in sentences."""

from __future__ import annotations

from calibrate.report.numbers import count, decimal_interval, decimals
from calibrate.workflow.tuning.probability import Mapped

TURNS = (
    "The map turns: somewhere a more suspicious score means a smaller probability. Look at the labels at that end "
    "before relying on it."
)


def sentence(mapped: Mapped) -> str:
    """Say how far the map's probabilities may be trusted."""
    result, apparent = mapped.fitted.reliability, mapped.fitted.apparent
    better = result.gain.low is not None and result.gain.low > 0
    worth = "better than" if better else "not clearly better than"
    brier = f"{decimals(result.brier.value)} ({decimal_interval(result.brier.low, result.brier.high)})"
    return (
        f"On {count(result.n, 'label')} it was not fitted on, {count(result.positives)} hallucinated, its "
        f"Brier score is {brier}, {worth} the {decimals(result.base_brier)} of always saying "
        f"the same; on the labels it was fitted on it would look like {decimals(apparent.brier.value)}."
    )
