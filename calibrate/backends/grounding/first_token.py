"""Models that write their verdict, read at the first token that they would write: "1" for supported against "0".

MiniCheck-Flan-T5 is one (Tang et al. 2024).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from calibrate.backends.grounding.grounder import Grounder
from calibrate.backends.grounding.labels import Reading
from calibrate.backends.inference import Encoded, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]


class FirstTokenGrounder(Grounder):
    """A sequence-to-sequence model whose first token is the verdict."""

    task: ClassVar[Task] = "first-token"
    classes: ClassVar[tuple[str, ...]] = ("ForConditionalGeneration",)

    def read(self, config: Mapping[str, Any], folder: Path) -> Reading:
        """The columns are those of `_support`: "0", "1"."""
        return Reading((1,), "softmax")

    @cached_property
    def _verdicts(self) -> list[int]:
        """The first tokens of "0" and "1". In Flan-T5's vocabulary these are 3, the blank before 0, and 209."""
        return [int(ids[0]) for ids in self.encode(["0", "1"])["input_ids"]]

    def _support(self, encoded: Sequence[Encoded]) -> Rows:
        import numpy as np

        if not encoded:
            return np.zeros((0, 1), dtype=np.float32)
        return self.reading.support(self.logits(encoded, columns=self._verdicts))[:, None]
