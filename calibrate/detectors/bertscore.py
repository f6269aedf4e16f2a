"""BERTScore: are the words of each sentence met, in meaning, by words of the context?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends.embedding import claims, cut, embedder, shortlist
from calibrate.backends.text.segments import Part
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.embedding import Asking, EmbeddingDetector, score_in_rounds, split_by_size
from calibrate.detectors.shared.scoring import (
    AGGREGATE_HELP,
    Aggregate,
    aggregate,
    by_number,
    claiming,
    contexts,
    explain_no_claims,
    limit_evidence,
)
from calibrate.detectors.shared.token_matching import Texts
from calibrate.types import Evidence, FlagWhen, Score, Trace

PORTION = 200_000  # characters at once: 150 MB of token vectors


@dataclass(frozen=True)
class BertScore(EmbeddingDetector):
    """Measures how well the words of each sentence of the answer are met, in meaning, by the words of one passage of
    the sources. A low value means that the answer says things in no passage's words.

    Needs an answer, sources (or a context) and the embedding model. Value: over the answer's sentences, the mean (or
    the lowest) of the highest BERTScore precision with any window of the context (Zhang et al. 2020), not rescaled.
    """

    name: ClassVar[str] = "bertscore"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "BERTScore"
    unit: ClassVar[str] = "BERTScore precision of the sentences with their nearest passages"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    usual_threshold: ClassVar[float] = 0.7
    batch: ClassVar[int] = 32

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` is F1 of the whole answer with the whole context, both cut off at the model's 256 word "
            "pieces: the longer the context, the lower. Here to compare."
        },
    )
    aggregate: Aggregate = field(default="mean", metadata={"help": AGGREGATE_HELP})
    sentences_per_window: int = field(
        default=2, metadata={"help": "Sentences of the context in one passage.", "low": 1, "high": 10}
    )

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        ask = self._ask_plain if self.variant == "plain" else self._ask
        for portion in split_by_size(traces, PORTION):
            yield from score_in_rounds(self.needs, portion, ask, embedder(self.model), tokens=True)

    def _ask(self, trace: Trace) -> Asking:
        model = embedder(self.model)
        sources = contexts(trace)
        extracted = claims(trace.answer, model, sources=by_number(trace.sources), among=claiming(trace))
        passages = cut([item.text for item in sources], model, sentences_per_window=self.sentences_per_window)
        if not extracted:
            return abstained(trace, explain_no_claims(trace))
        if not passages:
            return abstained(trace, "no sentence in the context")
        listed = shortlist(extracted, passages)
        tokens = yield [claim.text for claim in listed.claims] + [window.text for window in listed.windows]
        n_claims = len(listed.claims)
        passages_matched = Texts(tokens[n_claims:])
        evidence = []
        for claim, vectors in zip(listed.claims, tokens[:n_claims], strict=True):
            precision = passages_matched.precision(vectors)
            place = int(precision.argmax())
            window, value = listed.windows[place], float(precision[place])
            text = f"precision {value:.2f} with the nearest passage"
            passage = (window.start, window.end)
            evidence.append(Evidence(text, value, claim.start, claim.end, sources[window.place].number, passage))
        values = [item.value or 0.0 for item in evidence]
        remark = [Evidence(listed.remark)] if listed.remark else []
        shown = limit_evidence(remark + sorted(evidence, key=lambda item: item.value or 0.0))
        return scored(trace, aggregate(values, self.aggregate), shown)

    def _ask_plain(self, trace: Trace) -> Asking:
        model = embedder(self.model)
        whole = [trace.answer, "\n\n".join(trace.context_texts)]
        tokens = yield [text[: model.fit(text, [Part(0, len(text))])[0].end] for text in whole if text]
        if len(tokens) < 2:
            return abstained(trace, "no text in the context")
        return scored(trace, float(Texts([tokens[1]]).f1(tokens[0])[0]))
