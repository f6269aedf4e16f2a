"""Judge with a template: a model made to check answers, asked in its own words and read by its own grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends import files
from calibrate.backends.chat import Reply, Request, chat
from calibrate.backends.chat.prompts import Prompt, render_body
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared import templates
from calibrate.detectors.shared.judging import (
    Case,
    ChatDetector,
    answer_sentences,
    explain_nothing_to_judge,
    explain_too_long,
    in_one_line,
    object_reader,
    prompt_texts,
    read_reply,
    readable,
)
from calibrate.detectors.shared.replies import Unparsed, odds
from calibrate.detectors.shared.scoring import claiming, explain_no_claims, limit_evidence
from calibrate.detectors.shared.templates import Grammar
from calibrate.types import Evidence, FlagWhen, Score, Trace


@dataclass(frozen=True)
class JudgeTemplate(ChatDetector):
    """Asks a model that was trained to judge groundedness, behind a chat endpoint, with the template of that model. A
    high value means that the model finds the answer, or one of its sentences, unsupported by the context.

    Needs an answer, sources (or a context) and a chat endpoint that serves the model. Value: the probability of the
    word for unsupported among the template's two words, where the template reads log-probabilities and the endpoint
    gives them; else 1 or 0. A template that judges sentence by sentence gives the highest of them.
    """

    name: ClassVar[str] = "judge_template"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Judge: groundedness model"
    unit: ClassVar[str] = "probability that a groundedness model calls the answer unsupported"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5
    prompt: ClassVar[str] = ""  # it depends on the template

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` pastes the texts in as the model's authors do: a context may then close its own place and "
            "speak to the judge. Here to compare."
        },
    )
    template: Literal["own", "bespoke-minicheck", "granite-guardian", "lynx"] = field(
        default="own",
        metadata={
            "help": "Messages and grammar: those of a known model, or `own`, which asks any model and is there for a "
            "team to change (`files set templates/own.txt FILE`)."
        },
    )

    @property
    def _file(self) -> str:
        return f"templates/{self.template}.txt"

    def revision(self) -> str:
        return f"{chat(self.model).revision()}+template-{files.version(self._file)}"

    def unavailable(self) -> str | None:
        return chat(self.model).unavailable() or templates.problem(self._file, files.read(self._file))

    def plan(self, trace: Trace) -> Case | Score:
        rules = templates.grammar(self._file, files.read(self._file))
        places = prompt_texts(trace) | {"answer": trace.answer}
        parts = claiming(trace) if rules.unit == "sentence" else ()
        if why := explain_nothing_to_judge(answer_sentences(trace), places) or (
            explain_no_claims(trace) if rules.unit == "sentence" and not parts else None
        ):
            return abstained(trace, why)
        sentences = [in_one_line(trace.answer[part.start : part.end]) for part in parts] or [""]
        if why := explain_too_long(places | {"sentence": max(sentences, key=len)}, len(sentences), self.longest):
            return abstained(trace, why)
        rendered = [self._render(rules, places | {"sentence": text}) for text in sentences]
        spans: list[tuple[int | None, int | None]] = [(part.start, part.end) for part in parts] or [(None, None)]

        def read(replies: Sequence[Reply]) -> Score:
            pieces = [
                _read(rules, reply, prompt, start, end)
                for reply, prompt, (start, end) in zip(replies, rendered, spans, strict=True)
            ]
            pieces.sort(key=lambda piece: -(piece.value or 0.0))
            return scored(trace, pieces[0].value or 0.0, limit_evidence(pieces))

        return Case(tuple(_request(rules, prompt) for prompt in rendered), read)

    def plan_plain(self, trace: Trace) -> Case | Score:
        return self.plan(trace)

    def _render(self, rules: Grammar, texts: dict[str, str | list[str]]) -> Prompt:
        places = {place: text for place, text in texts.items() if f"{{{place}}}" in rules.body}
        return render_body(rules.body, places, fenced=self.variant == "default")


def _request(rules: Grammar, prompt: Prompt) -> Request:
    return Request(
        prompt.messages,
        rules.tokens,
        logprobs=rules.logprobs,
        readable=readable(lambda reply: _read(rules, reply, prompt, None, None)),
    )


def _read(rules: Grammar, reply: Reply, prompt: Prompt, start: int | None, end: int | None) -> Evidence:
    """Read one reply as the value of what was judged, with its reason. Raises Unreadable."""

    def parse(text: str) -> Evidence:
        if reply.finish == "length" and rules.form != "word":
            raise Unparsed("it was cut off")
        verdict = templates.verdict(rules, text, object_reader(prompt))
        likely = (
            odds(reply.tokens, text, verdict.start, rules.words)
            if rules.logprobs and verdict.start is not None
            else None
        )
        value = float(verdict.is_unsupported) if likely is None else likely.no
        word = rules.unsupported if verdict.is_unsupported else rules.supported
        source = "no usable log-probabilities" if likely is None else "from log-probabilities"
        reason = verdict.reason[:600]
        return Evidence(f"{word} ({source}){f': {reason}' if reason else ''}", value, start, end)

    return read_reply(reply, prompt, parse)
