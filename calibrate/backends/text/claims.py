"""Find the sentences of an answer that claim something. A lead-in, a greeting or a bare citation claims nothing.

Such a sentence is in no source, so a detector that judges sentence by sentence would take it for the worst one. One
rule: *a sentence without a word of its own claims nothing.* Not its own are

- words without content ("the", "of");
- marks and labels of sources ("[1]", "(Passage 1)");
- words that speak of the answer itself, a short list ("here", "summary", "sure");
- where the sentence ends in a colon and another follows, or is a heading, or declines to answer: also the question's
  words, and a number that counts no more than what follows ("five steps:").

Every name, every other number and every other word is the sentence's own, and then it is judged: "The drug cures
cancer:" is no lead-in. `docs/adr/0010-sentences-that-claim-nothing.md` has the reasons and what was measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import regex

from calibrate.backends.memo import Memo
from calibrate.backends.text.announcing import ANNOUNCING, COUNTS, LABELS, LEADING, PHRASES
from calibrate.backends.text.lexical import stem, without_citations
from calibrate.backends.text.refusals import words_beyond_refusal
from calibrate.backends.text.segments import Part, sentences, words
from calibrate.backends.text.wordlists import STOP_WORDS

HEADING_WORDS = 2  # a heading may be made of the question's words alone: "Side effects:"
HASHES = 9  # characters before a heading: a line break, the hashes, blanks
LABEL_DIGITS = 3  # of the number of a source or a step

_ALL = frozenset().union(*STOP_WORDS.values())
_ENDS_IN_COLON = regex.compile(r"[:：︰﹕][\"'”’»)\]」』）*_\s]*\Z")
_COLON = regex.compile(r":(?=\s|\*)|：")
_HEADING = regex.compile(r"(?:\A|\n)[^\S\n]*#{1,6}[^\S\n]+\Z")
_NO_BLANKS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")


def claiming_sentences(answer: str, *, question: str = "", sources: Iterable[str] = ()) -> tuple[Part, ...]:
    """Find the sentences that claim something, "The answer is: 42." without what leads in.

    `sources` are the sources' numbers as answers cite them, which tell citation marks from other brackets.
    """
    return _claiming(answer, question, *sources)


def _find_claiming(answer: str, question: str, *sources: str) -> tuple[Part, ...]:
    parts = sentences(answer)
    written = without_citations(answer, sources)
    reader = _Reader(frozenset(map(stem, words(question).tokens)))
    claiming = []
    for number, part in enumerate(parts):
        text = written[part.start : part.end]
        leads = _ENDS_IN_COLON.search(text) or _HEADING.search(answer[max(0, part.start - HASHES) : part.start])
        if not reader.claims_nothing(text, len(parts) - number - 1 if leads else 0):
            claiming.append(Part(reader.skip_lead_in(written, part), part.end))
    return tuple(claiming)


_claiming = Memo(_find_claiming, characters=2_000_000)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the sentences of one answer. `question_stems`: those of the words of the question."""

    question_stems: frozenset[str]

    def claims_nothing(self, text: str, following: int) -> bool:
        """Tell whether a sentence has no word of its own. `following`: how many it leads to; 0 if it leads in none."""
        # In one language: "war" carries content in English, whatever it does in German.
        return self._claims_nothing(text, following, _ALL) and any(
            self._claims_nothing(text, following, empty) for empty in (*STOP_WORDS.values(), frozenset())
        )

    def _claims_nothing(self, text: str, following: int, empty: frozenset[str]) -> bool:
        own, announces = _own_words(text, empty)
        if not own:
            return True
        if following:
            free = [
                w for w in own if w not in LEADING and stem(w) not in self.question_stems and not _counts(w, following)
            ]
            return not free and (announces or len(own) <= HEADING_WORDS)
        beyond = words_beyond_refusal(text) if announces else None
        return beyond is not None and all(
            w not in own or (stem(w) in self.question_stems and not _has_digit(w)) for w in beyond
        )

    def skip_lead_in(self, written: str, part: Part) -> int:
        """Where the sentence begins, after a lead-in such as "Here is the answer: "."""
        colon = _COLON.search(written, *part)
        if colon is None or not words(written[colon.end() : part.end]).tokens:
            return part.start
        if not self.claims_nothing(written[part.start : colon.end()], 1):
            return part.start
        start = int(colon.end())
        while written[start].isspace() or written[start] in "*_":
            start += 1
        return start


def _own_words(text: str, empty: frozenset[str]) -> tuple[list[str], bool]:
    """The words that are the sentence's own, and whether it has any that speak of the answer."""
    announces = labelled = False
    if _NO_BLANKS.search(text):
        text, n = PHRASES.subn(" ", text)
        announces = n > 0
    own: list[str] = []
    for token in words(text).tokens:
        if _has_digit(token):
            if not (labelled and token.isdecimal() and len(token) <= LABEL_DIGITS):
                own.append(token)
        elif token in ANNOUNCING:
            announces, labelled = True, token in LABELS
        elif token not in empty:
            own.append(token)
            labelled = False
    return own, announces


def _has_digit(token: str) -> bool:
    return any(character.isdigit() for character in token)


def _counts(token: str, following: int) -> bool:
    """Tell whether a number can be how many sentences follow."""
    value = int(token) if token.isdecimal() and len(token) <= LABEL_DIGITS else COUNTS.get(token, 0)
    return 2 <= value <= following
