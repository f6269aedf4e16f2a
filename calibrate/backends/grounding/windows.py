"""Cut contexts into windows on the borders of sentences, so that a model reads each of them whole."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calibrate.backends.embedding.passages import Window
from calibrate.backends.inference import Classifier, Pair
from calibrate.backends.text.segments import Part, sentences
from calibrate.errors import BadInput

LEAST = 8  # tokens of a window; less says nothing


@dataclass(frozen=True, slots=True)
class Counted:
    """A text with the places where its tokens begin."""

    text: str
    starts: tuple[int, ...]

    def count(self, start: int, end: int) -> int:
        """Count the tokens that begin in text[start:end]."""
        return bisect_left(self.starts, end) - bisect_left(self.starts, start)


def count_tokens(model: Classifier, texts: Sequence[str]) -> list[Counted]:
    """Tokenize texts once, to count the tokens of any part of them."""
    offsets = model.encode(texts, return_offsets_mapping=True)["offset_mapping"] if texts else []
    return [Counted(text, tuple(sorted(start for start, _ in row))) for text, row in zip(texts, offsets, strict=True)]


def cut_text(model: Classifier, counted: Counted, room: int) -> list[Part]:
    """Cut a text into consecutive windows of whole sentences with at most `room` tokens each.

    A sentence that is longer alone is cut where a token begins.
    """
    parts: list[Part] = []
    for sentence in sentences(counted.text):
        if parts and counted.count(parts[-1].start, sentence.end) <= room:
            parts[-1] = Part(parts[-1].start, sentence.end)
        elif counted.count(*sentence) <= room:
            parts.append(sentence)
        else:
            parts += model.fit(counted.text, [sentence], room=room)
    return parts


def cut_texts(model: Classifier, texts: Sequence[str], room: int) -> list[Window]:
    """Cut texts into windows that each lie in one of them."""
    return [
        Window(place, part.start, part.end, counted.text[part.start : part.end])
        for place, counted in enumerate(count_tokens(model, texts))
        for part in cut_text(model, counted, room)
    ]


def cut_answer(model: Classifier, answer: str, room: int) -> list[Part]:
    """Cut an answer into consecutive parts of whole sentences with at most `room` tokens each: mostly one."""
    (counted,) = count_tokens(model, [answer])
    if len(counted.starts) <= room:
        return [Part(0, len(answer))]
    borders = [part.start for part in cut_text(model, counted, room)][1:]
    return [Part(start, end) for start, end in zip([0, *borders], [*borders, len(answer)], strict=True)]


def count(model: Classifier, text: str) -> int:
    """Count the tokens of a text, without special ones."""
    return len(model.encode([text])["input_ids"][0])


def group_passages(
    model: Classifier, passages: Sequence[str], room: int, write_line: Callable[[int, str], str]
) -> list[list[Window]]:
    """Put passages together in order, whole, while at most `room` tokens of lines are together.

    `write_line` writes a passage with its number. A passage that does not fit alone is cut on the borders of sentences.
    """
    pieces: list[Window] = []
    for place, counted in enumerate(count_tokens(model, passages)):
        line = count(model, write_line(len(passages), ""))
        if len(counted.starts) + line < room:
            pieces.append(Window(place, 0, len(counted.text), counted.text))
        else:
            pieces += [
                Window(place, part.start, part.end, counted.text[part.start : part.end])
                for part in cut_text(model, counted, max(1, room - line - 1))
            ]
    groups: list[list[Window]] = []
    taken = 0
    for number, piece in enumerate(pieces, 1):
        size = count(model, write_line(number, piece.text))
        if not groups or taken + size + 1 > room:
            groups.append([piece])
            taken = size
        else:
            groups[-1].append(piece)
            taken += size + 1  # a line break stands between two
    return groups


def explain_no_room(question: str | None, answer: str, *, can_widen: bool) -> str:
    """Say that nothing of a context fits beside a question and an answer."""
    remedy = "set `window` to more tokens, or take" if can_widen else "take"
    return (
        f"a question of {len(question or '')} characters and an answer of {len(answer)} leave no room for a context in "
        f"what the model reads at once; {remedy} a model that reads more"
    )


def require_fit(pairs: Sequence[Pair], lengths: Sequence[int], limit: int) -> None:
    """Raise BadInput for the first pair with more tokens than the model reads."""
    for (first, second), length in zip(pairs, lengths, strict=True):
        if length > limit:
            raise BadInput(
                f"a context of {len(first)} and an answer of {len(second)} characters have {length} tokens, and the "
                f"model reads {limit}; a smaller `window` leaves more room"
            )
