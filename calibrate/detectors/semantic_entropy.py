"""Semantic entropy: how many different things does the model mean when it answers the question again?"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from calibrate.backends.nli import DEFAULT, Nli, nli
from calibrate.detectors.base import abstained, scored
from calibrate.detectors.shared.nli import Asking, Judge, Question, alternatives, explain_too_few, score_in_rounds
from calibrate.detectors.shared.scoring import limit_evidence
from calibrate.types import Evidence, FlagWhen, Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]


@dataclass(frozen=True)
class SemanticEntropy:
    """Measures into how many meanings other answers drawn for the same question fall, and how evenly. A high value
    means the model answers differently each time, so that this answer may be one guess of many.

    Needs at least two alternatives and an NLI model. Value: the entropy, in nats, of the shares of the clusters; two
    answers are in one cluster when each entails the other (Kuhn, Gal and Farquhar 2023; the discrete form of Farquhar
    et al. 2024, which needs no probabilities). It is at most ln n for n alternatives.
    """

    name: ClassVar[str] = "semantic_entropy"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Semantic entropy"
    unit: ClassVar[str] = "entropy of the alternatives' meanings, nats"
    needs: ClassVar[frozenset[str]] = frozenset({"alternatives"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    usual_threshold: ClassVar[float] = 0.69  # ln 2: as uncertain as a coin

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` judges the alternatives without their question, and calls it certain when all of them "
            "are refusals. Here to compare."
        },
    )
    equivalence: Literal["strict", "loose"] = field(
        default="strict",
        metadata={
            "help": "`strict`: each of two answers entails the other. `loose`: neither contradicts the other, and "
            "they are not both neutral."
        },
    )
    normalised: bool = field(
        default=False,
        metadata={"help": "Divide by ln n, so that traces with different numbers of alternatives compare: 0 to 1."},
    )
    include_answer: bool = field(
        default=False, metadata={"help": "Count the logged answer as one more alternative; the papers do not."}
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
        return self._nli.unavailable()

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_in_rounds(self.needs, traces, self._ask, self._nli)

    def _ask(self, trace: Trace) -> Asking:
        others = alternatives(trace)
        why = explain_too_few(others)
        if why and (self.variant == "default" or len(others) < 2):
            return abstained(trace, why)
        texts = [item.text.strip() for item in others]
        if self.include_answer and trace.answer.strip():
            texts.append(trace.answer.strip())
        question = f"{trace.question} " if self.variant == "default" and trace.question else ""
        clusters = yield from _find_clusters(texts, question, loose=self.equivalence == "loose")
        value = entropy([len(cluster) for cluster in clusters])
        if self.normalised:
            value /= math.log(len(texts))
        evidence = [
            Evidence(f"{len(cluster)} of {len(texts)} mean: {_quote(texts[cluster[0]])}")
            for cluster in sorted(clusters, key=len, reverse=True)
        ]
        return scored(trace, value, limit_evidence(evidence))


def entropy(counts: Sequence[int]) -> float:
    """−Σ p ln p over the shares of the counts, in nats; 0 for one cluster."""
    n = sum(counts)
    return max(0.0, -sum(count / n * math.log(count / n) for count in counts))


def _find_clusters(texts: Sequence[str], question: str, *, loose: bool) -> Generator[Question, Rows, list[list[int]]]:
    """Cluster texts greedily, in order (Kuhn et al., algorithm 1).

    A text joins the first cluster whose first member it is equivalent to. Identical texts are not judged.
    """
    same: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        same.setdefault(text, []).append(place)
    unclustered = list(same)
    clusters: list[list[int]] = []
    while unclustered:
        first, rest = unclustered[0], unclustered[1:]
        joined = {first}
        if rest:
            pairs = [
                (question + premise, question + hypothesis)
                for text in rest
                for premise, hypothesis in ((first, text), (text, first))
            ]
            rows = yield Judge(pairs)
            verdicts = rows.argmax(axis=1).tolist()
            joined |= {text for at, text in enumerate(rest) if _equivalent(*verdicts[2 * at : 2 * at + 2], loose=loose)}
        clusters.append(sorted(place for text in joined for place in same[text]))
        unclustered = [text for text in rest if text not in joined]
    return clusters


def _equivalent(forward: int, backward: int, *, loose: bool) -> bool:
    """Tell whether the labels of both directions (0 entailment, 1 neutral, 2 contradiction) mean equivalence."""
    if loose:
        return 2 not in (forward, backward) and (forward, backward) != (1, 1)
    return forward == backward == 0


def _quote(text: str) -> str:
    flat = " ".join(text.split())
    return f"“{flat[:100]}…”" if len(flat) > 100 else f"“{flat}”"
