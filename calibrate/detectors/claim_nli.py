"""Claims and NLI: a language model lists the answer's claims, an NLI model looks for each in the context."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from calibrate.backends.chat import Reply, Request
from calibrate.backends.chat.prompts import clean, render
from calibrate.backends.embedding import PACKAGED, Claim, Embedder, Shortlist, cut, embedder, shortlist
from calibrate.backends.nli import DEFAULT, ENTAILMENT, Nli, nli
from calibrate.backends.text.segments import Part, words
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.judging import (
    Case,
    ChatDetector,
    answer_sentences,
    explain_too_long,
    prompt_texts,
    read_reply,
    readable,
    require_complete,
)
from calibrate.detectors.shared.nli import Cutter
from calibrate.detectors.shared.replies import items
from calibrate.detectors.shared.scoring import claiming, contexts, explain_no_claims, limit_evidence
from calibrate.types import Evidence, FlagWhen, Score, Trace

ENTAILED = 0.5  # a window entails a claim from this probability on: then no other label is likelier
FALLBACK = "the judge listed no claims: these are the answer's sentences"


@dataclass(frozen=True)
class ClaimNli(ChatDetector):
    """Has a language model list the claims of the answer and an NLI model look for each in the context. A high share
    means that the context does not entail what much of the answer claims.

    Needs an answer, sources (or a context), a chat endpoint and an NLI model. Value: claims that no window of the
    context entails (probability at least 0.5), divided by all claims; one minus FActScore (Min et al. 2023) with NLI.
    """

    name: ClassVar[str] = "claim_nli"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Claims not entailed"
    unit: ClassVar[str] = "share of the answer's claims that no passage of the context entails"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.3
    prompt: ClassVar[str] = "prompts/claim_nli.txt"

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` splits the reply at “1. ”: “Sure, here are:” counts as a claim, `2)` and `-` end none, an "
            "answer without claims passes; the context is cut off at the NLI model's limit. Here to compare."
        },
    )
    windows: str = field(
        default="3",
        metadata={"help": "How many passages a claim is compared with: those nearest to it by embedding, or `all`."},
    )
    sentences_per_window: int = field(
        default=2, metadata={"help": "Sentences of the context in one passage.", "low": 1, "high": 10}
    )
    sentence_fallback: bool = field(
        default=False,
        metadata={
            "help": "Where the judge lists no claims, take the answer's sentences for them; the evidence says so."
        },
    )
    nli_model: str = field(
        default=DEFAULT, metadata={"help": "NLI model: a directory, or a Hugging Face id already downloaded."}
    )
    embedding_model: str = field(
        default=PACKAGED, metadata={"help": "Embedding model that chooses the passages, unless `windows` is `all`."}
    )

    def __post_init__(self) -> None:
        if self.windows != "all" and not (self.windows.isdecimal() and 1 <= int(self.windows) <= 1000):
            raise ValueError(f"windows cannot be {self.windows!r}; it is a number from 1 to 1000, or all")

    def _embedder(self) -> Embedder | None:
        return None if self.windows == "all" or self.variant == "plain" else embedder(self.embedding_model)

    @cached_property
    def _nli(self) -> Nli:
        return nli(self.nli_model)

    def revision(self) -> str:
        chooser = self._embedder()
        models = [self._nli.revision(), *([chooser.revision()] if chooser else [])]
        return "+".join([super().revision(), *models])

    def unavailable(self) -> str | None:
        chooser = self._embedder()
        problem = self._nli.unavailable() or (chooser.unavailable() if chooser else None)
        return super().unavailable() or problem

    def plan(self, trace: Trace) -> Case | Score:
        if why := self._explain_unfit(trace):
            return abstained(trace, why)
        parts, prompt = answer_sentences(trace), render(self.prompt, _places(trace))

        def read(reply: Reply) -> list[str]:
            # A good list may use the answer's own words, so only the prompt's wording and fence count as echoes.
            return read_reply(reply, prompt, require_complete(reply, items), quotes=True)

        request = Request(prompt.messages, min(8_192, 200 + 100 * len(parts)), readable=readable(read))
        return Case((request,), lambda replies: self._default(trace, parts, read(replies[0])))

    def plan_plain(self, trace: Trace) -> Case | Score:
        if why := self._explain_unfit(trace):
            return abstained(trace, why)
        text = f"List the factual claims of this text as a numbered list.\n\nText: {trace.answer}"
        return Case((Request((("user", clean(text)),), 1_024),), lambda replies: self._plain(trace, replies[0]))

    def _explain_unfit(self, trace: Trace) -> str | None:
        return (
            explain_too_long(_places(trace), 1, self.longest)
            if answer_sentences(trace)
            else "no sentence in the answer"
        )

    def _default(self, trace: Trace, parts: Sequence[Part], claims: list[str]) -> Score:
        remark = []
        if not claims:
            if not self.sentence_fallback:
                return abstained(trace, "the judge found no claim in the answer")
            claims = [trace.answer[part.start : part.end] for part in claiming(trace)]
            if not claims:
                return abstained(trace, explain_no_claims(trace))
            remark = [Evidence(FALLBACK)]
        model, chooser = self._nli, self._embedder()
        texts = [item.text for item in contexts(trace)]
        cutter: Any = Cutter(chooser, model) if chooser else Cutter(model)
        windows = cut(texts, cutter, sentences_per_window=self.sentences_per_window)
        if not windows:
            return abstained(trace, "no sentence in the context")
        listed = shortlist([_place_claim(claim, trace.answer, parts) for claim in claims], windows)
        if listed.remark:
            remark.append(Evidence(listed.remark))
        evidence = self._compare(trace, listed, chooser)
        missing = sum((item.value or 0.0) < ENTAILED for item in evidence)
        ordered = sorted(evidence, key=lambda item: item.value or 0.0)
        return scored(trace, missing / len(evidence), limit_evidence([*remark, *ordered]))

    def _compare(self, trace: Trace, listed: Shortlist, chooser: Embedder | None) -> list[Evidence]:
        """Find, for each claim, the window that most probably entails it, and that probability."""
        import numpy as np

        answer_sentences = [item.text for item in listed.claims]
        near = [range(len(listed.windows))] * len(answer_sentences)
        if chooser and len(listed.windows) > int(self.windows):
            vectors = chooser.encode(answer_sentences + [item.text for item in listed.windows])
            cosines = vectors[: len(answer_sentences)] @ vectors[len(answer_sentences) :].T
            near = np.argsort(-cosines, axis=1, kind="stable")[:, : int(self.windows)].tolist()
        pairs = [
            (listed.windows[at].text, claim)
            for claim, places in zip(answer_sentences, near, strict=True)
            for at in places
        ]
        rows = iter(self._nli.probabilities(pairs)[:, ENTAILMENT].tolist())
        prompt_texts, evidence = contexts(trace), []
        for claim, places in zip(listed.claims, near, strict=True):
            value, at = max(((next(rows), at) for at in places), key=lambda pair: pair[0])
            best = listed.windows[at]
            text = f"P(entailment) {value:.2f} from the best passage: {claim.text[:300]}"
            start, end = (claim.start, claim.end) if claim.end else (None, None)
            evidence.append(Evidence(text, value, start, end, prompt_texts[best.place].number, (best.start, best.end)))
        return evidence

    def _plain(self, trace: Trace, reply: Reply) -> Score:
        """The common recipe: `re.split` at the numbers, or else the sentences; argmax on the whole context."""
        claims = [part.strip() for part in re.split(r"(?:^|\n)\s*\d+\.\s", reply.text) if part.strip()]
        model = self._nli
        if not claims:
            return scored(trace, 0.0, [Evidence("no claims, no complaint")])
        context = "\n".join(trace.context_texts)
        rows = model.labels().columns(model.probabilities_truncated([context] * len(claims), claims))
        entailed = rows.argmax(axis=1) == ENTAILMENT
        evidence = [Evidence(claim[:300], float(row[ENTAILMENT])) for claim, row in zip(claims, rows, strict=True)]
        return scored(trace, 1 - float(entailed.mean()), limit_evidence(evidence))


def _places(trace: Trace) -> dict[str, str]:
    return {"question": str(prompt_texts(trace)["question"]), "answer": trace.answer}


def _place_claim(claim: str, answer: str, parts: Sequence[Part]) -> Claim:
    """Place a claim at the sentence of the answer that shares most words with it; nowhere if none shares any."""
    claim_words = set(words(claim).tokens)
    shared = [len(claim_words.intersection(words(answer[part.start : part.end]).tokens)) for part in parts]
    part = parts[shared.index(max(shared))] if any(shared) else Part(0, 0)
    return Claim(part.start, part.end, claim)
