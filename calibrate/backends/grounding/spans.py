"""Mark what a context does not support: token classifiers that read a context, a question and an answer.

LettuceDetect and TinyLettuce (Kovács and Recski 2025) are such models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from calibrate.backends import hub
from calibrate.backends.embedding.passages import Window
from calibrate.backends.grounding.labels import Reading, read_labels
from calibrate.backends.grounding.prompts import Prompt
from calibrate.backends.grounding.weights import SPAN_VARIABLE, explain_code, explain_missing, explain_task
from calibrate.backends.grounding.windows import (
    LEAST,
    count,
    cut_answer,
    explain_no_room,
    group_passages,
    require_fit,
)
from calibrate.backends.inference import Classifier, Encoded, Pair, Task, files
from calibrate.backends.inference.classifier import clean
from calibrate.backends.text.segments import Part
from calibrate.errors import BadInput, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW = 4096  # tokens of one input, as LettuceDetect reads
LEAST_WINDOW = 128  # LettuceDetect's prompt takes 60 to 80 of them
_SECOND_MARKS: Mapping[str, bool] = {"0": True, "1": False}


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the answer, answer[start:end], and the probability that the context does not support it."""

    start: int
    end: int
    probability: float


class SpanFinder(Classifier):
    """One token classifier with its prompt. Get it from `span_finder(...)`."""

    task: ClassVar[Task] = "token-classification"
    kind: ClassVar[str] = "span model"
    most_tokens: ClassVar[int] = 8192

    def __init__(
        self,
        model: str,
        prompt: Prompt,
        labels: Mapping[str, bool] | None = None,
        window: int | None = None,
        name: str = "",
        commit: str = hub.MAIN,
    ) -> None:
        super().__init__(model, commit)
        self.name = name or model
        self.prompt = prompt
        self._labels = labels or {}
        self._window = window or WINDOW

    def check(self, config: Mapping[str, Any], folder: Path) -> None:
        """Check architecture and labels. Raises Unavailable, with the remedy."""
        if (why := explain_code(folder, config)) is not None:
            raise Unavailable(why)
        if (why := explain_task(folder, config, ["ForTokenClassification"], "a token classifier")) is not None:
            raise Unavailable(why)
        self._read(config, folder)
        reads = min(self._window, files.limit(config, self.most_tokens, most=self.most_tokens))
        if self.prompt.layout == "lettucedetect" and reads < LEAST_WINDOW:
            raise Unavailable(
                f"the model in {folder} is asked to read {reads} tokens at once, which LettuceDetect's prompt takes by "
                f"itself; {'set `window` to more' if reads == self._window else 'take a model that reads more'}, or "
                "set `template` to pair"
            )

    def _read(self, config: Mapping[str, Any], folder: Path) -> Reading:
        usual = _SECOND_MARKS if self.prompt.layout == "lettucedetect" else None
        return read_labels(config, self._labels, str(folder), usual=usual)

    @cached_property
    def reading(self) -> Reading:
        """Which labels mean supported."""
        folder = self.require()
        return self._read(files.configuration(folder), folder)

    def revision(self) -> str:
        """The digest of the model's files, and how it is used: the prompt, the window, the meaning of labels."""
        means = "".join(f"-{label}={int(supports)}" for label, supports in sorted(self._labels.items()))
        return f"{super().revision()}-{self.prompt.layout}-{self.prompt.language}-{self._window}{means}"

    @property
    def limit(self) -> int:
        """The most tokens that an input may have, special ones included."""
        return min(self._window, super().limit)

    def directory(self) -> Path | None:
        """The directory of the model's files, or None if they are missing."""
        return super().directory() if self.model else None

    def explain_missing(self) -> str:
        """Say that the model is missing, and the remedy."""
        return explain_missing(self.name, "span model", SPAN_VARIABLE, "a token classifier such as LettuceDetect")

    # ------------------------------------------------------------------------------------------------- cutting

    def cut_answer(self, answer: str) -> list[Part]:
        """Cut an answer into parts of whole sentences that each take at most half of what the model reads."""
        return cut_answer(self, answer, self.room)

    def premises(self, passages: Sequence[str], question: str | None, answer: str) -> list[tuple[str, list[Window]]]:
        """Write the prompts that hold all passages beside this answer, each with the passages that it holds.

        As LettuceDetect does, whole passages are put together in order while they fit, numbered anew in each prompt.
        """
        free = self.limit - int(self.tokenizer().num_special_tokens_to_add(pair=True)) - count(self, answer)
        prompt = self.prompt.text(passages, question)
        if count(self, prompt) <= free:
            return [(prompt, [Window(place, 0, len(text), text) for place, text in enumerate(passages)])]
        room = free - count(self, self.prompt.text([""], question))
        if room < LEAST:
            raise BadInput(explain_no_room(question, answer, can_widen=self._window < super().limit))
        groups = group_passages(self, passages, room, self.prompt.line)
        return [(self.prompt.text([window.text for window in members], question), members) for members in groups]

    # ------------------------------------------------------------------------------------------------- marking

    def probabilities(self, pairs: Sequence[Pair]) -> NDArray[np.object_]:
        """Mark the tokens of answers, given (prompt, answer) pairs: an array with one list of Token per pair.

        Nothing is cut off: raises BadInput for a pair that is longer than the model reads.
        """
        with self._lock:
            encoded = self.encode(
                [prompt for prompt, _ in pairs], [answer for _, answer in pairs], return_offsets_mapping=True
            )
        require_fit(pairs, [len(ids) for ids in encoded["input_ids"]], super().limit)
        return self._mark(encoded, len(pairs))

    def probabilities_truncated(self, pairs: Sequence[Pair]) -> NDArray[np.object_]:
        """Mark tokens as the common recipe does, for comparison only: special tokens written in a text count as such,
        and what is beyond the limit is dropped, of the prompt first."""
        with self._lock:
            fits = all(count(self, answer) < self.limit // 2 for _, answer in pairs)
            encoded = self.tokenizer()(
                [clean(prompt) for prompt, _ in pairs],
                [clean(answer) for _, answer in pairs],
                truncation="only_first" if fits else "longest_first",
                max_length=self.limit,
                return_offsets_mapping=True,
            )
        return self._mark(encoded, len(pairs))

    def _mark(self, encoded: Any, n_pairs: int) -> NDArray[np.object_]:
        import numpy as np

        names = [name for name in encoded if name != "offset_mapping"]
        inputs: list[Encoded] = [{name: list(encoded[name][row]) for name in names} for row in range(n_pairs)]
        if self.prompt.layout == "lettucedetect":  # which tells the model nothing of which text is which
            for item in inputs:
                if "token_type_ids" in item:
                    item["token_type_ids"] = [0] * len(item["token_type_ids"])
        marked = np.empty(n_pairs, dtype=object)
        for row, logits in enumerate(self.token_logits(inputs)):
            unsupported = 1.0 - self.reading.support(logits)
            marked[row] = list(_of_answer(encoded.sequence_ids(row), encoded["offset_mapping"][row], unsupported))
        return marked


def _of_answer(
    sequences: Sequence[int | None], offsets: Sequence[tuple[int, int]], unsupported: NDArray[np.float32]
) -> Iterator[Token]:
    for sequence, (start, end), probability in zip(sequences, offsets, unsupported.tolist(), strict=True):
        if sequence == 1 and start < end:
            yield Token(start, end, probability)
