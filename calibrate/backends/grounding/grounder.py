"""Judge pairs: is this part of an answer supported by this context?

The model may be any sequence classifier or regressor of `transformers`; `first_token` and `hhem` have two more kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from calibrate.backends import hub
from calibrate.backends.embedding.passages import Window
from calibrate.backends.grounding.labels import Reading, read_labels
from calibrate.backends.grounding.templates import Template
from calibrate.backends.grounding.weights import PAIR_VARIABLE, explain_code, explain_missing, explain_task
from calibrate.backends.grounding.windows import (
    LEAST,
    count,
    cut_answer,
    explain_no_room,
    group_passages,
    require_fit,
)
from calibrate.backends.inference import Classifier, Encoded, Pair, files
from calibrate.backends.inference.classifier import clean
from calibrate.backends.text.segments import Part
from calibrate.errors import BadInput, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

MOST_TOKENS = 8192  # of one input; ModernBERT reads so many
SLACK = 8  # tokens; a text has some more or fewer beside its neighbours than alone
_RELATIVE = frozenset(("t5", "umt5", "mt5", "HHEMv2Config"))  # these know distances alone, and read any length


class Grounder(Classifier):
    """One model with the layout of its inputs and the meaning of its labels. Get it from `grounder(...)`."""

    kind: ClassVar[str] = "groundedness model"
    most_tokens: ClassVar[int] = MOST_TOKENS
    classes: ClassVar[tuple[str, ...]] = ("ForSequenceClassification",)

    def __init__(
        self,
        model: str,
        template: Template,
        labels: Mapping[str, bool] | None = None,
        window: int | None = None,
        name: str = "",
        commit: str = hub.MAIN,
    ) -> None:
        super().__init__(model, commit)
        self.name = name or model
        self.template = template
        self._labels = labels or {}
        self._window = window or template.window

    # ------------------------------------------------------------------------------------------------ identity

    def directory(self) -> Path | None:
        """The directory of the model's files, or None if they are missing."""
        return super().directory() if self.model else None

    def explain_missing(self) -> str:
        """Say that the model is missing, and the remedy."""
        return explain_missing(self.name, self.kind, PAIR_VARIABLE, "a classifier of (context, answer) pairs")

    def check(self, config: Mapping[str, Any], folder: Path) -> None:
        """Check architecture and labels. Raises Unavailable, with the remedy."""
        if (why := explain_code(folder, config)) is not None:
            raise Unavailable(why)
        if (why := explain_task(folder, config, self.classes, "a classifier of pairs, or of that layout,")) is not None:
            raise Unavailable(why)
        self.read(config, folder)

    def read(self, config: Mapping[str, Any], folder: Path) -> Reading:
        """Read from the configuration which outputs mean supported. Raises Unavailable where it does not say."""
        return read_labels(config, self._labels, str(folder), usual=self.template.usual)

    @cached_property
    def reading(self) -> Reading:
        """Which outputs mean supported."""
        folder = self.require()
        return self.read(files.configuration(folder), folder)

    def revision(self) -> str:
        """The digest of the model's files, and how it is used: the layout, the window, the meaning of labels."""
        means = "".join(f"-{label}={int(supports)}" for label, supports in sorted(self._labels.items()))
        return f"{super().revision()}-{self.template.name}-{self._window}{means}"

    @property
    def limit(self) -> int:
        """The most tokens that an input may have, special ones included."""
        return min(self._window, self._positions)

    @cached_property
    def _positions(self) -> int:
        config = files.configuration(self.require())
        if _reads_any_length(config):
            return self.most_tokens
        return super().limit

    # ------------------------------------------------------------------------------------------------- cutting

    @cached_property
    def overhead(self) -> int:
        """The tokens of an input without context and answer."""
        return len(self.encode_pairs([("", "")])[0]["input_ids"]) + SLACK

    @property
    def room(self) -> int:
        """The most tokens of a sentence: a quarter of what the model reads."""
        return max(1, (self.limit - self.overhead) // 4)

    def context_room(self, taken: int) -> int:
        """The most tokens of a context beside an answer (and a question) that take so many."""
        free = self.limit - self.overhead - taken
        return min(free, self.template.context_tokens or free)

    def cut_answer(self, answer: str) -> list[Part]:
        """Cut an answer into parts of whole sentences that each take at most half of what the model reads."""
        return cut_answer(self, answer, max(1, (self.limit - self.overhead) // 2))

    def premises(self, passages: Sequence[str], question: str | None, answer: str) -> list[tuple[str, list[Window]]]:
        """Write the premises that hold all passages, in order, beside this answer, each with the passages that it
        holds."""
        prefix = self.template.premise(question, "")
        room = self.context_room(count(self, answer) + count(self, prefix))
        if room < LEAST:
            raise BadInput(explain_no_room(prefix, answer, can_widen=self._window < self._positions))
        groups = group_passages(self, passages, room, lambda _, passage: passage)
        return [
            (self.template.premise(question, "\n".join(window.text for window in members)), members)
            for members in groups
        ]

    # ------------------------------------------------------------------------------------------------ encoding

    def encode_pairs(self, pairs: Sequence[Pair]) -> list[Encoded]:
        """Encode (context, answer) pairs in the model's layout."""
        if self.template.as_pair:
            return super().encode_pairs(pairs)
        tokenizer = self.tokenizer()
        before, after = self._ends
        if self.template.opens_with_pad:
            before = [*before, int(tokenizer.pad_token_id)]
        end = tokenizer.eos_token_id
        glue = [int(end if end is not None else tokenizer.sep_token_id)]
        columns = zip(*(self.template.texts(premise, hypothesis) for premise, hypothesis in pairs), strict=True)
        encoded = [self.encode(list(column)) for column in columns]
        rows: list[Encoded] = []
        for row in range(len(pairs)):
            ids = list(before)
            for place, column in enumerate(encoded):
                ids += glue if place else []
                ids += column["input_ids"][row]
            ids += after
            rows.append({name: _filled(name, ids) for name in encoded[0]})
        return rows

    @cached_property
    def _ends(self) -> tuple[list[int], list[int]]:
        """The special tokens that the tokenizer puts before and after a text."""
        bare = list(self.encode(["a"])["input_ids"][0])
        whole = list(self.encode(["a"], add_special_tokens=True)["input_ids"][0])
        start = next(at for at in range(len(whole)) if whole[at : at + len(bare)] == bare)
        return whole[:start], whole[start + len(bare) :]

    # ------------------------------------------------------------------------------------------------- judging

    def probabilities(self, pairs: Sequence[Pair]) -> Rows:
        """Judge (context, answer) pairs: float32 of shape (pairs, 1), the probability that the context supports the
        answer.

        Nothing is cut off: raises BadInput for a pair that is longer than the model reads.
        """
        encoded = self.encode_pairs(pairs)
        require_fit(pairs, [len(inputs["input_ids"]) for inputs in encoded], self._positions)
        return self._support(encoded)

    def probabilities_truncated(self, pairs: Sequence[Pair]) -> Rows:
        """Judge pairs as common recipes do, for comparison only: special tokens written in a text count as such, and
        what is beyond the limit is dropped, of the context first."""
        tokenizer = self.tokenizer()
        rows: list[Encoded] = []
        for premise, hypothesis in pairs:
            texts = self.template.texts(clean(premise), clean(hypothesis))
            with self._lock:
                if self.template.as_pair:
                    fits = len(tokenizer(texts[1], verbose=False)["input_ids"]) < self.limit // 2
                    cut = "only_first" if fits else "longest_first"
                    encoded = tokenizer(*texts, truncation=cut, max_length=self.limit)
                else:
                    opening = f"{tokenizer.pad_token} " if self.template.opens_with_pad else ""
                    glue = str(tokenizer.eos_token or tokenizer.sep_token)
                    encoded = tokenizer(opening + glue.join(texts), truncation=True, max_length=self.limit)
            rows.append({name: list(encoded[name]) for name in encoded})
        return self._support(rows)

    def _support(self, encoded: Sequence[Encoded]) -> Rows:
        import numpy as np

        if not encoded:
            return np.zeros((0, 1), dtype=np.float32)
        return self.reading.support(self.logits(encoded))[:, None]


def _reads_any_length(config: Mapping[str, Any]) -> bool:
    """Tell whether the network knows the distances between tokens alone, not their positions."""
    kind = config.get("model_type")
    if kind == "deberta-v2":
        return bool(config.get("relative_attention")) and not config.get("position_biased_input", True)
    return kind in _RELATIVE


def _filled(name: str, ids: Sequence[int]) -> list[int]:
    return list(ids) if name == "input_ids" else [int(name == "attention_mask")] * len(ids)
