"""Grounded spans: which words of the answer does a token classifier mark as unsupported?"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from calibrate.backends.grounding import DEFAULT, SpanFinder, Wanted, span_finder
from calibrate.backends.grounding.labels import parse_map
from calibrate.backends.grounding.prompts import Language
from calibrate.backends.grounding.spans import Token
from calibrate.backends.text.segments import words
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.nli import Asking, Judge, score_in_rounds
from calibrate.detectors.shared.scoring import claiming, contexts, explain_no_claims, limit_evidence, score_each
from calibrate.detectors.shared.whole_answers import meet
from calibrate.errors import BadInput
from calibrate.types import Evidence, FlagWhen, Score, Trace

MARKED = 0.5  # a token at least as likely unsupported as supported


@dataclass(frozen=True)
class GroundedSpans:
    """Measures, with a token classifier (LettuceDetect, TinyLettuce, or your own), which words of the answer the
    sources do not support, and marks them. A high value means at least one word is almost certainly unsupported.

    Needs an answer, sources (or a context) and a span model; a question helps. Value: the highest probability that a
    token of the answer is unsupported. Where the context is longer than the model reads, a token's probability is the
    lowest over windows, as it suffices that one of them supports it.
    """

    name: ClassVar[str] = "grounded_spans"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Unsupported spans"
    unit: ClassVar[str] = "probability that the least supported token of the answer is unsupported"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` reads question, context and answer at once and cuts off the context where it is too long. "
            "Here to compare."
        },
    )
    across: Literal["min", "max"] = field(
        default="min",
        metadata={
            "help": "Where the context needs several windows: a token's probability is the lowest over windows (min), "
            "or the highest, as the package lettucedetect has it (max), which marks what any window does not support."
        },
    )
    template: Literal["lettucedetect", "pair"] = field(
        default="lettucedetect",
        metadata={
            "help": "What stands before the answer: LettuceDetect's prompt with numbered passages, or question and "
            "context alone (pair)."
        },
    )
    language: Language = field(
        default="en", metadata={"help": "Language of LettuceDetect's prompt; the model's, not the answer's."}
    )
    labels: str = field(
        default="",
        metadata={
            "help": "Which labels mean supported, where their names do not say: `0=supported, 1=unsupported`, by name "
            "or position. With LettuceDetect's prompt, LABEL_1 is unsupported unless this says otherwise."
        },
    )
    window: int = field(
        default=0, metadata={"help": "Most tokens read at once; 0: up to 4,096.", "low": 0, "high": 32768}
    )
    model: str = field(
        default=DEFAULT,
        metadata={
            "help": "A name of the catalogue, a Hugging Face id already downloaded, or a directory. `default` is what "
            "TOUCHSTONE_SPANS_MODEL names."
        },
    )

    def __post_init__(self) -> None:
        try:
            parse_map(self.labels)
        except BadInput as error:
            raise ValueError(str(error)) from error

    @cached_property
    def _model(self) -> SpanFinder:
        return span_finder(Wanted(self.model, self.template, self.labels, self.window), self.language)

    def revision(self) -> str:
        return self._model.revision()

    def unavailable(self) -> str | None:
        return self._model.unavailable()

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        if self.variant == "plain":
            return score_each(self.needs, traces, self._judge_plain)
        return score_in_rounds(self.needs, traces, self._ask, self._model)

    def _ask(self, trace: Trace) -> Asking:
        if not claiming(trace):
            return abstained(trace, explain_no_claims(trace))
        meetings, remark = meet(self._model, trace.answer, trace.question or None, contexts(trace))
        if not any(meetings):
            return abstained(trace, "no sentence in the context")
        lists: Any = yield Judge([meeting.pair for part in meetings for meeting in part])
        marked = iter(lists)
        tokens: list[Token] = []
        for part in meetings:
            tokens += _combine([next(marked) for _ in part], self.across, part[0].part.start)
        return _score_tokens(trace, tokens, remark)

    def _judge_plain(self, trace: Trace) -> Score:
        """The common recipe: one prompt, cut at the limit."""
        model = self._model
        prompt = model.prompt.text(trace.context_texts, trace.question or None)
        return _score_tokens(trace, model.probabilities_truncated([(prompt, trace.answer)])[0], None)


def _combine(windows: Sequence[Sequence[Token]], across: Literal["min", "max"], shift: int) -> Iterator[Token]:
    """Combine what each window makes of the same tokens; `shift` places those of a part in the answer."""
    choose = min if across == "min" else max
    for tokens in zip(*windows, strict=True):
        first = tokens[0]
        probability = choose(token.probability for token in tokens)
        yield Token(first.start + shift, first.end + shift, probability)


def spans(tokens: Iterable[Token]) -> list[Token]:
    """Join consecutive marked tokens to spans, each with the highest of their probabilities."""
    joined: list[Token] = []
    open_span = False
    for token in tokens:
        if token.probability < MARKED:
            open_span = False
        elif open_span:
            joined[-1] = Token(joined[-1].start, token.end, max(joined[-1].probability, token.probability))
        else:
            joined.append(token)
            open_span = True
    return joined


def widen(answer: str, marked: Sequence[Token]) -> list[Token]:
    """Widen spans that begin or end inside a word to whole words, as people read them; those that touch become one."""
    tokens = words(answer)
    widened: list[Token] = []
    for span in marked:
        inside = range(bisect_right(tokens.ends, span.start), bisect_left(tokens.starts, span.end))
        start = min([span.start, *(tokens.starts[at] for at in inside)])
        end = max([span.end, *(tokens.ends[at] for at in inside)])
        if widened and start < widened[-1].end:
            before = widened.pop()
            start, end = min(start, before.start), max(end, before.end)
            span = Token(start, end, max(span.probability, before.probability))
        widened.append(Token(start, end, span.probability))
    return widened


def _score_tokens(trace: Trace, tokens: Sequence[Token], remark: str | None) -> Score:
    if not tokens:
        return abstained(trace, "no token in the answer")
    highest = max(tokens, key=lambda token: token.probability)
    marked, wording = widen(trace.answer, spans(tokens)), "unsupported with probability"
    if not marked:
        marked, wording = widen(trace.answer, [highest]), "nothing marked; here unsupported with probability"
    evidence = [_evidence(trace.answer, span, wording) for span in marked]
    evidence.sort(key=lambda piece: -(piece.value or 0.0))
    remarks = [Evidence(remark)] if remark else []
    return scored(trace, highest.probability, limit_evidence(remarks + evidence))


def _evidence(answer: str, span: Token, wording: str) -> Evidence:
    """Evidence at the span's characters, without blanks at its ends."""
    text = answer[span.start : span.end]
    start = span.start + len(text) - len(text.lstrip())
    end = span.start + len(text.rstrip())
    if start >= end:
        start, end = span.start, span.end
    return Evidence(f"{wording} {span.probability:.2f}", span.probability, start, end)
