"""SelfCheck with a judge: do other answers to the same question, drawn from the same model, say the same?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends.chat import Reply, Request
from calibrate.backends.chat.prompts import Prompt, clean, render
from calibrate.backends.text.segments import Part
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.judging import (
    Case,
    ChatDetector,
    explain_too_long,
    in_one_line,
    read_reply,
    readable,
)
from calibrate.detectors.shared.nli import alternatives, explain_too_few
from calibrate.detectors.shared.replies import Word, first_word
from calibrate.detectors.shared.scoring import claiming_or_all, limit_evidence
from calibrate.types import Evidence, FlagWhen, Score, Trace

VALUES: dict[Word, float] = {"yes": 0.0, "no": 1.0, "n/a": 0.5}


@dataclass(frozen=True)
class SelfcheckJudge(ChatDetector):
    """Asks a language model, for every sentence of the answer and every alternative answer, whether the alternative
    supports the sentence. A high value means that the answer says what the other answers do not: it was made up anew.

    Needs an answer, at least two alternatives and a chat endpoint; one request for each sentence and alternative. Value
    of a sentence: the mean of 0 for YES, 1 for NO and 0.5 for N/A (SelfCheckGPT with prompt, Manakul et al. 2023).
    """

    name: ClassVar[str] = "selfcheck_judge"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "SelfCheck: judge"
    unit: ClassVar[str] = "share of alternatives that do not support the worst sentence, by a judge"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "alternatives"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5
    prompt: ClassVar[str] = "prompts/selfcheck_judge.txt"

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` checks a freshly drawn answer (the first alternative) against the others, never looking "
            "at the answer that was logged; every reply that starts with neither yes nor no is 0.5. Here to compare."
        },
    )
    aggregate: Literal["max", "mean"] = field(
        default="max", metadata={"help": "The worst sentence decides (max), or the average over sentences (mean)."}
    )

    def plan(self, trace: Trace) -> Case | Score:
        parts = claiming_or_all(trace)
        drawn = alternatives(trace)
        if why := explain_too_few(drawn) if parts else "no sentence in the answer":
            return abstained(trace, why)
        others = [item.text for item in drawn]
        texts = [in_one_line(trace.answer[part.start : part.end]) for part in parts]
        if why := self._too_long(texts, others):
            return abstained(trace, why)
        rendered = [render(self.prompt, {"alternative": other, "sentence": text}) for text in texts for other in others]

        def read(replies: Sequence[Reply]) -> Score:
            words = [_word(*pair) for pair in zip(replies, rendered, strict=True)]
            return self._score(trace, parts, [words[i : i + len(others)] for i in range(0, len(words), len(others))])

        return Case(tuple(map(_request, rendered)), read)

    def _too_long(self, texts: Sequence[str], others: Sequence[str]) -> str | None:
        places = {"sentence": max(texts, key=len), "alternative": max(others, key=len)}
        return explain_too_long(places, len(texts) * len(others), self.longest)

    def _score(self, trace: Trace, parts: Sequence[Part], words_by_sentence: Sequence[Sequence[Word]]) -> Score:
        values = [sum(VALUES[word] for word in words) / len(words) for words in words_by_sentence]
        value = max(values) if self.aggregate == "max" else sum(values) / len(values)
        evidence = [
            Evidence(_remark(Counter(words)), value_of_sentence, part.start, part.end)
            for part, words, value_of_sentence in zip(parts, words_by_sentence, values, strict=True)
        ]
        return scored(
            trace,
            value,
            limit_evidence(sorted(evidence, key=lambda value_of_sentence: -(value_of_sentence.value or 0.0))),
        )

    def plan_plain(self, trace: Trace) -> Case | Score:
        """The common recipe: `answer = generate()`, then `samples = [generate() for _ in range(n)]`."""
        fresh, *samples = trace.alternatives
        if why := self._too_long([fresh], samples):
            return abstained(trace, why)
        questions = [
            f"Context: {sample}\n\nSentence: {fresh}\n\nIs the sentence supported by the context above? "
            "Answer Yes or No.\n\nAnswer: "
            for sample in samples
        ]

        def read(replies: Sequence[Reply]) -> Score:
            starts = [reply.text.strip().lower() for reply in replies]
            values = [0.0 if start.startswith("yes") else 1.0 if start.startswith("no") else 0.5 for start in starts]
            return scored(trace, sum(values) / len(values), [Evidence(f"the replies: {', '.join(starts)[:600]}")])

        return Case(tuple(Request((("user", clean(text)),), 16) for text in questions), read)


def _request(prompt: Prompt) -> Request:
    return Request(prompt.messages, 16, readable=readable(lambda reply: _word(reply, prompt)))


def _word(reply: Reply, prompt: Prompt) -> Word:
    return read_reply(reply, prompt, lambda text: first_word(text, cut=reply.finish == "length").word)


def _remark(counted: Counter[Word]) -> str:
    unclear = f", {counted['n/a']} cannot tell" if counted["n/a"] else ""
    return f"{counted['no']} of {counted.total()} alternatives do not support this{unclear}"
