"""SelfCheckGPT with NLI: do other answers to the same question contradict what this one says?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from calibrate.backends.embedding import Claim, claims
from calibrate.backends.nli import CONTRADICTION, DEFAULT, ENTAILMENT, Nli, nli
from calibrate.backends.text.segments import Part
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.nli import (
    PAIRS,
    Alternative,
    Asking,
    Cutter,
    Judge,
    alternatives,
    explain_too_few,
    remark_on_parts,
    score_in_rounds,
)
from calibrate.detectors.shared.scoring import by_number, claiming_or_all, limit_evidence, score_each
from calibrate.types import Evidence, FlagWhen, Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]


@dataclass(frozen=True)
class SelfCheckNli:
    """Measures how far other answers drawn for the same question contradict each sentence of this one. A high value
    means the model does not stand by what it said.

    Needs an answer, at least two alternatives and an NLI model that tells contradiction. Value per sentence: the mean
    over alternatives of P(contradiction), with the softmax over entailment and contradiction alone and the pair in the
    order (sentence, alternative), as SelfCheckGPT defines it (Manakul, Liusie and Gales 2023).
    """

    name: ClassVar[str] = "selfcheck_nli"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "SelfCheck NLI"
    unit: ClassVar[str] = "P(contradiction) of a sentence by other answers, mean over sentences"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "alternatives"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` is the reference as published: one pair at a time, both texts cut off at the model's "
            "limit, refusals among the alternatives counted as answers. Here to compare."
        },
    )
    aggregate: Literal["mean", "max"] = field(
        default="mean",
        metadata={"help": "The average over sentences, as in the paper (mean), or the worst sentence (max)."},
    )
    model: str = field(
        default=DEFAULT,
        metadata={
            "help": "NLI model: a directory or a Hugging Face id already downloaded. `default` is what "
            "TOUCHSTONE_NLI_MODEL names, else cross-encoder/nli-deberta-v3-small."
        },
    )

    @cached_property
    def _nli(self) -> Nli:
        return nli(self.model)

    def revision(self) -> str:
        return self._nli.revision()

    def unavailable(self) -> str | None:
        model = self._nli
        if (why := model.unavailable()) is not None:
            return why
        if model.labels().contradiction is None:
            return f"the NLI model {model.model!r} does not tell contradiction from neutral; name one that does"
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        if self.variant == "plain":
            return score_each(self.needs, traces, self._plain)
        return score_in_rounds(self.needs, traces, self._ask, self._nli)

    def _ask(self, trace: Trace) -> Asking:
        extracted, others = self._claims(trace, claiming_or_all(trace)), alternatives(trace)
        if why := explain_too_few(others):
            return abstained(trace, why)
        answering = [item for item in others if not item.declines]
        if len(answering) < 2:
            return abstained(trace, "fewer than two alternatives that are not refusals")
        if not extracted:
            return abstained(trace, "no sentence in the answer")
        checked = extracted[: max(1, PAIRS // len(answering))]
        rows = yield Judge([(claim.text, alternative.text) for claim in checked for alternative in answering])
        remarks = [Evidence(cut)] if (cut := remark_on_parts(trace, extracted)) else []
        if len(checked) < len(extracted):
            remarks.append(
                Evidence(f"too long to check in full: the first {len(checked)} of {len(extracted)} sentences")
            )
        if left_out := len(others) - len(answering):
            remarks.append(Evidence(f"{left_out} of {len(others)} alternatives are refusals and contradict nothing"))
        return self._score_table(trace, checked, answering, rows, remarks)

    def _claims(self, trace: Trace, among: Sequence[Part] | None = None) -> list[Claim]:
        return claims(trace.answer, Cutter(self._nli), sources=by_number(trace.sources), among=among)

    def _score_table(
        self, trace: Trace, checked: list[Claim], answering: list[Alternative], rows: Rows, remarks: list[Evidence]
    ) -> Score:
        against = rows[:, CONTRADICTION] / (rows[:, CONTRADICTION] + rows[:, ENTAILMENT]).clip(min=1e-30)
        table = against.reshape(len(checked), len(answering))
        means, worst = table.mean(axis=1), table.argmax(axis=1)
        evidence = []
        for claim, value, place, row in zip(checked, means.tolist(), worst, table, strict=True):
            alternative = answering[int(place)]
            text = f"contradiction {value:.2f} over {len(answering)} alternatives, most ({row[place]:.2f}) by number "
            evidence.append(Evidence(f"{text}{alternative.number}: {alternative.shown}", value, claim.start, claim.end))
        value = float(means.mean() if self.aggregate == "mean" else means.max())
        return scored(trace, value, limit_evidence(remarks + sorted(evidence, key=lambda item: -(item.value or 0.0))))

    def _plain(self, trace: Trace) -> Score:
        """The reference's loop, but for its two-label model: with three labels, neutral is left out of the softmax."""
        model = self._nli
        checked = self._claims(trace)[: max(1, PAIRS // len(trace.alternatives))]
        if not checked:
            return abstained(trace, "no sentence in the answer")
        means = []
        for claim in checked:
            rows = [model.probabilities_truncated([claim.text], [alternative]) for alternative in trace.alternatives]
            columns = [model.labels().columns(row)[0].tolist() for row in rows]
            shares = [row[CONTRADICTION] / max(row[CONTRADICTION] + row[ENTAILMENT], 1e-30) for row in columns]
            means.append(sum(shares) / len(shares))
        return scored(trace, sum(means) / len(means) if self.aggregate == "mean" else max(means))
