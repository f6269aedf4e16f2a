"""The meaning of an NLI model's labels, read from its configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrate.errors import Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MEANINGS = {
    "entailment": "entailment",
    "entail": "entailment",
    "entails": "entailment",
    "neutral": "neutral",
    "contradiction": "contradiction",
    "contradict": "contradiction",
    "contradicts": "contradiction",
    "notentailment": "rest",
    "nonentailment": "rest",
}


@dataclass(frozen=True, slots=True)
class Labels:
    """The positions of the labels in the model's output.

    In a model with only entailment and not_entailment, `neutral` is the position of the latter, and `contradiction` is
    None.
    """

    entailment: int
    neutral: int | None
    contradiction: int | None

    @classmethod
    def from_config(cls, config: Mapping[str, Any], where: Path) -> Labels:
        """Read `id2label` of a model's configuration. Raises Unavailable, naming the labels, if they are not NLI's."""
        id2label = config.get("id2label") or {}
        names = {int(place): str(name) for place, name in id2label.items()} if isinstance(id2label, Mapping) else {}
        meanings = [_MEANINGS.get(re.sub(r"[\W_]", "", names[place].lower())) for place in sorted(names)]
        if sorted(names) != list(range(len(names))) or sorted(map(str, meanings)) not in _LABEL_SETS:
            listed = ", ".join(names[place] for place in sorted(names)) or "none"
            raise Unavailable(
                f"the labels of the NLI model in {where} are {listed}; they must be entailment, neutral and "
                "contradiction, or entailment and not_entailment, in any order: name them so under `id2label` in its "
                "config.json if you know which is which"
            )
        places = {meaning: place for place, meaning in enumerate(meanings)}
        return cls(places["entailment"], places.get("neutral", places.get("rest")), places.get("contradiction"))

    def columns(self, probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
        """Reorder columns to entailment, neutral, contradiction. A label that the model lacks gets 0."""
        import numpy as np

        places = (self.entailment, self.neutral, self.contradiction)
        absent = np.zeros(len(probabilities), dtype=np.float32)
        return np.stack([absent if place is None else probabilities[:, place] for place in places], axis=1)


_LABEL_SETS = (["contradiction", "entailment", "neutral"], ["entailment", "rest"], ["contradiction", "entailment"])
