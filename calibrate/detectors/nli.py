"""NLI: is each sentence of the answer entailed by some passage of the context?"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from calibrate.backends.embedding import PACKAGED, Embedder, Shortlist, claims, cut, embedder, shortlist
from calibrate.backends.nli import CONTRADICTION, DEFAULT, ENTAILMENT, Nli, nli
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.candidates import explain_limit, rank_sharing
from calibrate.detectors.shared.nli import (
    PAIRS,
    Asking,
    Cutter,
    Embed,
    Judge,
    Question,
    remark_on_parts,
    score_in_rounds,
)
from calibrate.detectors.shared.scoring import (
    Aggregate,
    Context,
    aggregate,
    by_number,
    claiming,
    contexts,
    explain_no_claims,
    limit_evidence,
    score_each,
)
from calibrate.types import Evidence, FlagWhen, Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

PLAIN_LABELS = ("contradiction", "neutral", "entailment")  # of roberta-large-mnli, which the recipe was written for


@dataclass(frozen=True)
class NliSupport:
    """Measures, with a model trained for it, whether some passage of the sources entails each sentence of the answer. A
    low value means at least one sentence is contradicted, or entailed by nothing in the sources.

    Needs an answer, sources (or a context) and an NLI model. Value: the lowest, over sentences, of the highest, over
    windows of the context, of P(entailment) − P(contradiction); after SummaC-ZS (Laban et al. 2022).
    """

    name: ClassVar[str] = "nli"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "NLI"
    unit: ClassVar[str] = "P(entailment) − P(contradiction) of the least supported sentence by its best passage"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    usual_threshold: ClassVar[float] = 0.0

    variant: Literal["default", "entailment", "plain"] = field(
        default="default",
        metadata={
            "help": "`entailment` takes P(entailment) alone, so that a contradiction counts no more than silence (then "
            "values are from 0 to 1). `plain` glues context and answer together with a separator that the context may "
            "contain too, cuts off what is too long (the answer first) and takes the confidence in the likeliest "
            "label, whichever that is. Here to compare."
        },
    )
    aggregate: Aggregate = field(
        default="min",
        metadata={
            "help": "The worst sentence decides (min), to raise an alarm; or the mean of the two worst (lowest_two), "
            "or of all (mean), to rank answers."
        },
    )
    windows: str = field(
        default="3",
        metadata={
            "help": "How many passages a sentence is judged with: those nearest to it by embedding (a number), or "
            "`all`, which costs about seven times as much and needs no embedding model."
        },
    )
    sentences_per_window: int = field(
        default=2, metadata={"help": "Sentences of the context in one passage.", "low": 1, "high": 10}
    )
    evidence: Literal["worst", "all"] = field(
        default="worst",
        metadata={
            "help": "The score is the same. `worst` judges a sentence only until it is clear that it is not the worst "
            "one; `all` finds the best passage for every sentence. With `lowest_two` and `mean` every sentence is "
            "judged in full."
        },
    )
    model: str = field(
        default=DEFAULT,
        metadata={
            "help": "NLI model: a directory or a Hugging Face id already downloaded. `default` is what "
            "TOUCHSTONE_NLI_MODEL names, else cross-encoder/nli-deberta-v3-small."
        },
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
        return nli(self.model)

    def revision(self) -> str:
        chooser = self._embedder()
        return self._nli.revision() + (f"+{chooser.revision()}" if chooser else "")

    def unavailable(self) -> str | None:
        chooser = self._embedder()
        return self._nli.unavailable() or (chooser.unavailable() if chooser else None)

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        if self.variant == "plain":
            return score_each(self.needs, traces, self._plain)
        return score_in_rounds(self.needs, traces, self._ask, self._nli, self._embedder())

    def _ask(self, trace: Trace) -> Asking:
        chooser, model = self._embedder(), self._nli
        cutter = Cutter(chooser, model) if chooser else Cutter(model)
        sources = contexts(trace)
        extracted = claims(trace.answer, cutter, sources=by_number(trace.sources), among=claiming(trace))
        passages = cut([item.text for item in sources], cutter, sentences_per_window=self.sentences_per_window)
        if not extracted:
            return abstained(trace, explain_no_claims(trace))
        if not passages:
            return abstained(trace, "no sentence in the context")
        listed = shortlist(extracted, passages)
        candidates = (yield from _rank_nearest(listed, int(self.windows))) if chooser else rank_sharing(listed, PAIRS)
        search = _Search(listed, candidates, sources, subtracts=self.variant == "default")
        while pairs := search.next(everything=self.evidence == "all" or self.aggregate != "min"):
            search.learn((yield Judge(pairs)))
        values = [item.best for item in search.sentences]
        value = aggregate(values, self.aggregate)
        n_wanted = len(listed.windows) if chooser is None else min(int(self.windows), len(listed.windows))
        remarks = [listed.remark, explain_limit(candidates, n_wanted), remark_on_parts(trace, extracted)]
        evidence = sorted(search.all_evidence(), key=lambda item: item.value or 0.0)
        return scored(trace, value, limit_evidence([Evidence(text) for text in remarks if text] + evidence))

    def _plain(self, trace: Trace) -> Score:
        """The common recipe: one text with a separator in it, cut at the limit; the likeliest label's confidence."""
        model = self._nli
        separator = model.tokenizer().sep_token or " "
        (row,) = model.probabilities_truncated([f"{' '.join(trace.context_texts)} {separator} {trace.answer}"])
        at = int(row.argmax())
        label = PLAIN_LABELS[at] if len(row) == len(PLAIN_LABELS) else f"label {at}"
        return scored(trace, float(row[at]), [Evidence(f"{label}, {row[at]:.2f} sure", float(row[at]))])


def _rank_nearest(listed: Shortlist, most: int) -> Generator[Question, Rows, list[list[int]]]:
    """Rank, for each claim, the windows by cosine, nearest first."""
    vectors = yield Embed([claim.text for claim in listed.claims] + [window.text for window in listed.windows])
    n_claims = len(listed.claims)
    order = (-(vectors[:n_claims] @ vectors[n_claims:].T)).argsort(axis=1, kind="stable")
    most = max(1, min(most, PAIRS // n_claims))
    return [[int(at) for at in row[:most]] for row in order]


@dataclass(slots=True)
class _Sentence:
    """A claim (its row), the windows to judge it with, likeliest first, and its best support so far."""

    row: int
    windows: list[int]
    n_judged: int = 0
    best: float = -2.0
    at: int = -1
    entailment: float = 0.0
    contradiction: float = 0.0

    @property
    def complete(self) -> bool:
        return self.n_judged == len(self.windows)


class _Search:
    """The exact search for a trace's least supported sentence, in rounds of pairs.

    A sentence is dropped as soon as one window supports it better than the worst complete sentence: further windows can
    only raise it. Support is P(entailment) - P(contradiction), or without `subtracts` P(entailment).
    """

    def __init__(
        self, listed: Shortlist, candidates: Sequence[list[int]], sources: Sequence[Context], *, subtracts: bool = True
    ) -> None:
        self._listed, self._sources, self._subtracts = listed, sources, subtracts
        self.sentences = [_Sentence(row, windows) for row, windows in enumerate(candidates)]
        self._requested: list[tuple[_Sentence, int]] = []
        self._rounds = 0

    def next(self, *, everything: bool) -> list[tuple[str, str]]:
        """The (window, claim) pairs of the next round; none once the lowest sentence is known."""
        self._rounds += 1
        lowest = min((sentence.best for sentence in self.sentences if sentence.complete), default=2.0)
        open_sentences = [
            sentence for sentence in self.sentences if not sentence.complete and (everything or sentence.best < lowest)
        ]
        most = len(self._listed.windows) if everything else 2 ** max(0, self._rounds - 2)
        if self._rounds == 2 and open_sentences:  # complete the one that looks worst, as the bound for the others
            open_sentences, most = [min(open_sentences, key=lambda sentence: sentence.best)], len(self._listed.windows)
        self._requested = [
            (sentence, at)
            for sentence in open_sentences
            for at in sentence.windows[sentence.n_judged : sentence.n_judged + most]
        ]
        return [
            (self._listed.windows[at].text, self._listed.claims[sentence.row].text) for sentence, at in self._requested
        ]

    def learn(self, rows: Rows) -> None:
        """Record the probabilities of the pairs requested last."""
        for (sentence, at), row in zip(self._requested, rows.tolist(), strict=True):
            sentence.n_judged += 1
            support = row[ENTAILMENT] - row[CONTRADICTION] if self._subtracts else row[ENTAILMENT]
            if support > sentence.best:
                sentence.best, sentence.at = support, at
                sentence.entailment, sentence.contradiction = row[ENTAILMENT], row[CONTRADICTION]

    def all_evidence(self) -> list[Evidence]:
        """One piece of evidence per sentence; for a sentence that was dropped early it says so."""
        return [self._evidence(sentence) for sentence in self.sentences]

    def _evidence(self, sentence: _Sentence) -> Evidence:
        claim, window = self._listed.claims[sentence.row], self._listed.windows[sentence.at]
        number = self._sources[window.place].number
        passage = "the best passage" if sentence.complete else "a passage (others may support it more)"
        text = f"entailment {sentence.entailment:.2f}, contradiction {sentence.contradiction:.2f} by {passage}"
        return Evidence(text, sentence.best, claim.start, claim.end, number, (window.start, window.end))
