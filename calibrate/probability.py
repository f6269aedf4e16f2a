"""Map a detector's score to the probability of a hallucination. Plain Python, because the runtime uses it too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from calibrate.errors import BadInput
from calibrate.types import FlagWhen, Interval

KIND = "ridge_logistic"
FAR = 1e6  # spreads from the centre; further out the probability does not change, but the square may overflow


@dataclass(frozen=True, slots=True)
class ProbabilityMap:
    """P(hallucinated) = 1 / (1 + exp(-(b0 + b1 z + b2 max(z, 0)^2 / 2))), `coefficients` (b0, b1, b2).

    z = (score - centre) / spread, its sign turned where the detector flags below: positive is suspicious. `centre` and
    `spread` are in the detector's units, spread above 0. The map may fall where the labels did.
    """

    centre: float
    spread: float
    coefficients: tuple[float, float, float]
    flag_when: FlagWhen

    def probability(self, score: float | None) -> float | None:
        """Compute P(hallucinated), 0 to 1, of a score in the detector's units; None for a missing score."""
        if score is None or math.isnan(score):
            return None
        away = (score - self.centre) / self.spread
        z = max(-FAR, min(FAR, away if self.flag_when == "above" else -away))
        b0, b1, b2 = self.coefficients
        return 0.5 * (1 + math.tanh((b0 + b1 * z + b2 * max(z, 0.0) ** 2 / 2) / 2))

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            # + 0.0 turns -0.0 into 0.0: JSON readers and the digest do not distinguish them.
            "centre": self.centre + 0.0,
            "spread": self.spread,
            "coefficients": [coefficient + 0.0 for coefficient in self.coefficients],
            "flag_when": self.flag_when,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ProbabilityMap:
        """Read a map from a document; unknown keys are ignored. Raises BadInput for what is not a map."""
        try:
            b0, b1, b2 = (float(coefficient) for coefficient in document["coefficients"])
            centre, spread = float(document["centre"]), float(document["spread"])
            kind, flag_when = document["kind"], document["flag_when"]
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"no probability map: {type(error).__name__} {error}; fit it again") from error
        if kind != KIND or flag_when not in ("above", "below"):
            raise BadInput(f"no probability map of kind {kind!r} that flags {flag_when!r}: update Touchstone")
        if not (spread > 0 and all(map(math.isfinite, (centre, spread, b0, b1, b2)))):
            raise BadInput("a probability map needs finite numbers and a spread above 0; fit it again")
        return cls(centre, spread, (b0, b1, b2), flag_when)


@dataclass(frozen=True, slots=True)
class JudgedMap:
    """A map with its quality on `n` labels that it was not fitted on, `positives` of them hallucinated.

    `brier` is its Brier score and `ece` its expected calibration error; both are 0 at best and 1 at worst.
    """

    map: ProbabilityMap
    n: int
    positives: int
    brier: Interval
    ece: Interval

    def __str__(self) -> str:
        brier = "unknown" if self.brier.value is None else f"{self.brier.value:.3f}"
        return f"a map with a Brier score of {brier} ({self.n:,} labels)"

    def to_json(self) -> dict[str, Any]:
        figures = {name: asdict(getattr(self, name)) for name in ("brier", "ece")}
        return {**self.map.to_json(), "n": self.n, "positives": self.positives, **figures}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> JudgedMap:
        """Read what `to_json` returned. Raises BadInput for what is not a map."""
        fitted = ProbabilityMap.from_json(document)
        brier, ece = (Interval(*(document[name][end] for end in ("value", "low", "high"))) for name in ("brier", "ece"))
        return cls(fitted, int(document["n"]), int(document["positives"]), brier, ece)
