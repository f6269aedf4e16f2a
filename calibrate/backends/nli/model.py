"""Natural language inference: does a premise entail a hypothesis, contradict it, or neither?

Any Hugging Face sequence-classification model with NLI's labels works: a directory (safetensors or `model.onnx`), or
a hub id in the local cache. One model per process, every distinct pair judged once, no network access, and nothing
truncated: a pair that is longer than the model reads is judged in parts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from calibrate.backends import weights
from calibrate.backends.inference import Classifier, Encoded, Pair, files
from calibrate.backends.inference.classifier import clean, softmax
from calibrate.backends.inference.pairs import PairMemo
from calibrate.backends.nli.labels import Labels
from calibrate.errors import BadInput, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

DEFAULT = "default"
HUB_DEFAULT = "cross-encoder/nli-deberta-v3-small"
VARIABLE = "TOUCHSTONE_NLI_MODEL"
ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2  # the columns of `probabilities`
PARTS = 256  # of one pair; seconds to a minute


class Nli(Classifier):
    """One NLI model. Get it from `nli(model)`; it loads nothing before the first pair."""

    kind: ClassVar[str] = "NLI model"

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._memo = PairMemo(width=3)

    def explain_missing(self) -> str:
        """Say that the model is missing, and the remedy."""
        pull = "nli" if self.model == resolve(DEFAULT) else self.model
        return (
            f"no NLI model {self.model!r} here; fetch it with `python -m calibrate models pull {pull}`, or set "
            f"{VARIABLE} to a directory that holds one (config.json, tokenizer.json, and model.safetensors or "
            "model.onnx)"
        )

    def check(self, config: Mapping[str, Any], folder: Path) -> None:
        """Check that the model's labels are NLI's. Raises Unavailable, naming them, if they are not."""
        Labels.from_config(config, folder)

    def labels(self) -> Labels:
        """The model's labels. Raises Unavailable if it is missing or its labels are not NLI's."""
        if (folder := self.directory()) is None:
            raise Unavailable(self.explain_missing())
        return Labels.from_config(files.configuration(folder), folder)

    def probabilities(self, pairs: Sequence[Pair]) -> Rows:
        """Judge pairs of (premise, hypothesis).

        Distinct pairs are judged once and cached. A pair that is longer than the model reads is divided: its row is
        that of the least supported part of the hypothesis with the part of the premise that supports it most, by
        P(entailment) - P(contradiction).

        Returns float32, one row per pair, in order, with columns entailment, neutral, contradiction. A model with two
        labels fills two columns: `neutral` holds not_entailment, and contradiction is 0. Raises BadInput for a pair of
        more than PARTS parts.
        """
        return self._memo.rows(pairs, self._judge)

    def _judge(self, pairs: Sequence[Pair]) -> Rows:
        import numpy as np

        # (row, part of the hypothesis, input): one for a pair that fits, several for one that does not.
        parts: list[tuple[int, int, Encoded]] = []
        for row, inputs in enumerate(self.encode_pairs(pairs)):
            if len(inputs["input_ids"]) <= self.limit:
                parts.append((row, 0, inputs))
            else:
                divided = list(islice(self.divide(*pairs[row]), PARTS + 1))
                if len(divided) > PARTS:
                    raise BadInput(_too_long(*pairs[row]))
                parts += [(row, piece, inputs) for piece, inputs in divided]
        rows = self.labels().columns(self.forward([inputs for _, _, inputs in parts]))
        if len(parts) == len(pairs):
            return rows
        support = rows[:, ENTAILMENT] - rows[:, CONTRADICTION]
        best: dict[tuple[int, int], int] = {}
        for at, (row, piece, _) in enumerate(parts):
            chosen = best.setdefault((row, piece), at)
            best[row, piece] = at if support[at] > support[chosen] else chosen
        worst: dict[int, int] = {}
        for (row, _), at in best.items():
            chosen = worst.setdefault(row, at)
            worst[row] = at if support[at] < support[chosen] else chosen
        return np.asarray(rows[[worst[row] for row in range(len(pairs))]])

    def forward(self, inputs: Sequence[Encoded]) -> Rows:
        """Compute the softmax of the model's logits: one row per input, columns in the model's own order."""
        return softmax(self.logits(inputs))

    def probabilities_truncated(self, premises: Sequence[str], hypotheses: Sequence[str] | None = None) -> Rows:
        """Compute probabilities as common recipes do, for comparison only; columns in the model's own order.

        Special tokens written in a text count as such, and everything beyond the limit is dropped.
        """
        with self._lock:
            more = [] if hypotheses is None else [list(map(clean, hypotheses))]
            encoded = self.tokenizer()(list(map(clean, premises)), *more, truncation=True, max_length=self.limit)
            return self.forward([{name: encoded[name][row] for name in encoded} for row in range(len(premises))])

    def forget(self) -> None:
        """Clear the cache, for benchmarks."""
        self._memo.clear()


def _too_long(premise: str, hypothesis: str) -> str:
    return (
        f"a premise of {len(premise)} and a hypothesis of {len(hypothesis)} characters would take the NLI model more "
        f"than {PARTS} parts to judge; shorten the texts"
    )


def resolve(model: str = DEFAULT) -> str:
    """Resolve "default": TOUCHSTONE_NLI_MODEL if that is set, else a small DeBERTa-v3 of the hub."""
    return (os.environ.get(VARIABLE, "").strip() or HUB_DEFAULT) if model in (DEFAULT, "") else model


def nli(model: str = DEFAULT) -> Nli:
    """Get the process's NLI model of this name; another one once its files have changed."""
    name = resolve(model)
    folder = weights.directory(name)
    return _models(name, files.digest(folder) if folder else "")


@lru_cache(maxsize=4)
def _models(name: str, _digest: str) -> Nli:
    return Nli(name)
