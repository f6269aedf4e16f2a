"""Grounded: does a model trained for it find the answer supported by the context?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

from calibrate.backends.embedding import Claim, Window, claims, shortlist
from calibrate.backends.grounding import DEFAULT, Grounder, Wanted, grounder
from calibrate.backends.grounding.labels import parse_map
from calibrate.backends.grounding.windows import cut_texts
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.candidates import explain_limit, rank_sharing
from calibrate.detectors.shared.nli import Asking, Judge, remark_on_parts, score_in_rounds
from calibrate.detectors.shared.scoring import (
    AGGREGATE_HELP,
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
from calibrate.detectors.shared.whole_answers import Meeting, meet
from calibrate.errors import BadInput
from calibrate.types import Evidence, FlagWhen, Score, Trace

PAIRS = 512  # of one trace; each is a window of hundreds of tokens


@dataclass(frozen=True)
class Grounded:
    """Measures, with a model trained for it (MiniCheck, FactCG, HHEM, groundcheck, or your own), how well the sources
    support the answer. A low value means at least one sentence has no support in any passage.

    Needs an answer, sources (or a context) and a groundedness model. Value: the lowest, over sentences, of the highest
    probability of support, over windows of the context; where the model judges whole answers, the highest over windows.
    """

    name: ClassVar[str] = "grounded"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Groundedness model"
    unit: ClassVar[str] = "probability that the context supports the least supported sentence, or the whole answer"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "below"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` judges the whole answer with the whole context at once and cuts off what is too long. "
            "Here to compare."
        },
    )
    judge: Literal["auto", "sentences", "answer"] = field(
        default="auto",
        metadata={
            "help": "What the model judges: each sentence with a window of the context (sentences), or the whole "
            "answer with question and context (answer). `auto` is as the model was trained."
        },
    )
    aggregate: Aggregate = field(default="min", metadata={"help": AGGREGATE_HELP})
    template: Literal["auto", "pair", "groundcheck", "minicheck", "minicheck-t5", "factcg", "hhem"] = field(
        default="auto",
        metadata={
            "help": "The layout that the model was trained with. `auto` takes the catalogue's, and for a directory "
            "that of HHEM or MiniCheck-Flan-T5 where the network is of that kind, else `pair`: context and answer as a "
            "pair."
        },
    )
    labels: str = field(
        default="",
        metadata={
            "help": "Which labels mean supported, where their names do not say: `1=supported, 0=unsupported`, by name "
            "or position."
        },
    )
    window: int = field(
        default=0,
        metadata={"help": "Most tokens read at once; 0: as many as the model was made for.", "low": 0, "high": 32768},
    )
    model: str = field(
        default=DEFAULT,
        metadata={
            "help": "A name of the catalogue, a Hugging Face id already downloaded, or a directory. `default` is what "
            "TOUCHSTONE_GROUNDED_MODEL names."
        },
    )

    def __post_init__(self) -> None:
        try:
            parse_map(self.labels)
        except BadInput as error:
            raise ValueError(str(error)) from error

    @cached_property
    def _model(self) -> Grounder:
        return grounder(Wanted(self.model, self.template, self.labels, self.window))

    def revision(self) -> str:
        return self._model.revision()

    def unavailable(self) -> str | None:
        return self._model.unavailable()

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        model = self._model
        if self.variant == "plain":
            return score_each(self.needs, traces, lambda trace: _judge_plain(trace, model))
        judged = model.template.judged if self.judge == "auto" else self.judge
        ask = self._ask_sentences if judged == "sentences" else self._ask_answer
        return score_in_rounds(self.needs, traces, ask, model)

    def _ask_sentences(self, trace: Trace) -> Asking:
        model, sources = self._model, contexts(trace)
        extracted = claims(trace.answer, model, sources=by_number(trace.sources), among=claiming(trace))
        passages = cut_texts(model, [item.text for item in sources], model.context_room(model.room))
        if not extracted:
            return abstained(trace, explain_no_claims(trace))
        if not passages:
            return abstained(trace, "no sentence in the context")
        listed = shortlist(extracted, passages)
        candidates = rank_sharing(listed, PAIRS)
        places = [(row, at) for row, windows in enumerate(candidates) for at in windows]
        rows = yield Judge([(listed.windows[at].text, listed.claims[row].text) for row, at in places])
        best: dict[int, tuple[float, int]] = {}
        for (row, at), support in zip(places, rows[:, 0].tolist(), strict=True):
            if row not in best or support > best[row][0]:
                best[row] = support, at
        evidence = [
            _sentence_evidence(listed.claims[row], listed.windows[at], support, sources)
            for row, (support, at) in best.items()
        ]
        remarks = [listed.remark, explain_limit(candidates, len(listed.windows)), remark_on_parts(trace, extracted)]
        value = aggregate([support for support, _ in best.values()], self.aggregate)
        return scored(trace, value, _with_remarks(remarks, evidence))

    def _ask_answer(self, trace: Trace) -> Asking:
        sources = contexts(trace)
        if not claiming(trace):
            return abstained(trace, explain_no_claims(trace))
        meetings, remark = meet(self._model, trace.answer, trace.question, sources)
        if not any(meetings):
            return abstained(trace, "no sentence in the context")
        rows = yield Judge([meeting.pair for part in meetings for meeting in part])
        supports = iter(rows[:, 0].tolist())
        evidence = [_part_evidence([(next(supports), meeting) for meeting in part], sources) for part in meetings]
        value = min(piece.value for piece in evidence if piece.value is not None)
        return scored(trace, value, _with_remarks([remark], evidence))


def _judge_plain(trace: Trace, model: Grounder) -> Score:
    """The common recipe: everything at once, cut at the limit."""
    premise = model.template.premise(trace.question, "\n".join(trace.context_texts))
    (support,) = model.probabilities_truncated([(premise, trace.answer)])[:, 0].tolist()
    return scored(trace, support, [Evidence(f"support {support:.2f} of the whole answer", support)])


def _sentence_evidence(claim: Claim, window: Window, support: float, sources: Sequence[Context]) -> Evidence:
    text = f"support {support:.2f} by the best passage"
    return Evidence(text, support, claim.start, claim.end, sources[window.place].number, (window.start, window.end))


def _part_evidence(judged: Sequence[tuple[float, Meeting]], sources: Sequence[Context]) -> Evidence:
    support, best = max(judged, key=lambda item: item[0])
    among = f" by the best of {len(judged)} windows of the context" if len(judged) > 1 else " by the context"
    part, text = best.part, f"support {support:.2f}{among}"
    if len(best.passages) != 1:
        return Evidence(text, support, part.start, part.end)
    (passage,) = best.passages
    number = sources[passage.place].number
    return Evidence(text, support, part.start, part.end, number, (passage.start, passage.end))


def _with_remarks(remarks: Sequence[str | None], evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    ordered = sorted(evidence, key=lambda piece: piece.value or 0.0)
    return limit_evidence([Evidence(text) for text in remarks if text] + ordered)
