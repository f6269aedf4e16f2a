"""Judge, yes or no: how probable does a language model find NO when asked whether the context supports the answer?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends.chat import Reply, Request
from calibrate.backends.chat.prompts import render
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.judging import (
    Case,
    ChatDetector,
    answer_sentences,
    explain_nothing_to_judge,
    explain_too_long,
    plain_case,
    prompt_texts,
    read_reply,
    readable,
)
from calibrate.detectors.shared.replies import FirstWord, Unparsed, first_word, odds
from calibrate.types import Evidence, FlagWhen, Score, Trace


@dataclass(frozen=True)
class JudgeYesNo(ChatDetector):
    """Asks a language model whether everything in the answer is supported by the context, YES or NO. A high value means
    that the model says NO, or is about to.

    Needs an answer, sources (or a context) and a chat endpoint. Value: P(NO) / (P(YES) + P(NO)) at the first token of
    the reply, over all spellings, where the endpoint gives log-probabilities (as in Kadavath et al. 2022); else 1 for
    NO and 0 for YES.
    """

    name: ClassVar[str] = "judge_yes_no"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Judge: yes or no"
    unit: ClassVar[str] = "probability that a judge says NO, the answer is not supported"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5
    prompt: ClassVar[str] = "prompts/judge_yes_no.txt"

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` tests what the reply starts with: “Not sure” and “NONE” count as NO, `**YES**` and "
            "`**NO**` as neither (0.5). Here to compare."
        },
    )
    logprobs: int = field(
        default=10,
        metadata={
            "help": "Top alternatives of a token to ask for; 0 for endpoints that give none: YES is 0 then, NO 1.",
            "low": 0,
            "high": 20,
        },
    )

    def plan(self, trace: Trace) -> Case | Score:
        places = prompt_texts(trace) | {"answer": trace.answer}
        if why := explain_nothing_to_judge(answer_sentences(trace), places) or explain_too_long(
            places, 1, self.longest
        ):
            return abstained(trace, why)
        prompt = render(self.prompt, places)

        def read(reply: Reply) -> Score:
            return read_reply(reply, prompt, lambda text: _score(trace, reply, text))

        request = Request(prompt.messages, 120, logprobs=self.logprobs, readable=readable(read))
        return Case((request,), lambda replies: read(replies[0]))

    def plan_plain(self, trace: Trace) -> Case | Score:
        """The common recipe, with the texts pasted in."""
        prompt = (
            f"Context: {chr(10).join(trace.context_texts)}\n\nAnswer: {trace.answer}\n\n"
            "Is the answer supported by the context? Answer YES or NO."
        )
        return plain_case(trace, prompt, self.longest, 32, _plain_value)


def _plain_value(text: str) -> float:
    start = text.strip().upper()
    return 1.0 if start.startswith("NO") else 0.0 if start.startswith("YES") else 0.5


def _score(trace: Trace, reply: Reply, text: str) -> Score:
    verdict: FirstWord = first_word(text, cut=reply.finish == "length")
    if verdict.word == "n/a":
        raise Unparsed("N/A is neither YES nor NO")
    reply_text = f"{verdict.word.upper()}: {verdict.rest[:600]}" if verdict.rest else verdict.word.upper()
    likely = odds(reply.tokens, text, verdict.start)
    if likely is None:
        explanation = "the endpoint gave no usable log-probabilities, so NO is 1 and YES is 0"
        value = float(verdict.word == "no")
    else:
        explanation = (
            f"P(NO) {likely.no:.3f} from log-probabilities; YES and NO together have {likely.mass:.1%} at that token"
        )
        value = likely.no
    return scored(trace, value, (Evidence(reply_text, value), Evidence(explanation)))
