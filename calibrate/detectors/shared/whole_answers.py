"""Judge answers as a whole: which parts of an answer meet which parts of the context, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from calibrate.backends.embedding import Claim, Shortlist, Window, shortlist
from calibrate.backends.embedding.passages import WINDOW_CHARACTERS
from calibrate.backends.text.segments import Part, windows
from calibrate.detectors.shared.scoring import Context

SENTENCES = 8  # of a passage, where the context is so long that passages are chosen


class WholeAnswerModel(Protocol):
    """A model that reads a context and an answer at once."""

    def cut_answer(self, answer: str) -> list[Part]: ...

    def premises(
        self, passages: Sequence[str], question: str | None, answer: str
    ) -> list[tuple[str, list[Window]]]: ...


@dataclass(frozen=True, slots=True)
class Meeting:
    """A part of the answer with one premise, and the passages of sources that the premise holds."""

    part: Claim
    premise: str
    passages: tuple[Window, ...]

    @property
    def pair(self) -> tuple[str, str]:
        return self.premise, self.part.text


def meet(
    model: WholeAnswerModel, answer: str, question: str | None, sources: Sequence[Context]
) -> tuple[list[list[Meeting]], str | None]:
    """List, for each part of the answer, every premise that it is judged with; and a remark on what is left out."""
    parts = [Claim(part.start, part.end, answer[part.start : part.end]) for part in model.cut_answer(answer)]
    listed = shortlist(parts, _passages(sources))
    passages = [window.text for window in listed.windows]
    meetings = []
    for part in listed.claims:
        premises = model.premises(passages, question, part.text)
        meetings.append([Meeting(part, text, _located(members, listed)) for text, members in premises])
    return meetings, listed.remark


def _passages(sources: Sequence[Context]) -> list[Window]:
    """Whole sources; where these are too long together, runs of sentences to choose from."""
    texts = [source.text for source in sources]
    if sum(map(len, texts)) <= WINDOW_CHARACTERS:
        return [Window(place, 0, len(text), text) for place, text in enumerate(texts)]
    return [
        Window(place, part.start, part.end, text[part.start : part.end])
        for place, text in enumerate(texts)
        for part in windows(text, sentences_per_window=SENTENCES)[::SENTENCES]
    ]


def _located(members: Sequence[Window], listed: Shortlist) -> tuple[Window, ...]:
    """Passages of passages as passages of sources."""
    located = []
    for window in members:
        within = listed.windows[window.place]
        located.append(Window(within.place, within.start + window.start, within.start + window.end, window.text))
    return tuple(located)
