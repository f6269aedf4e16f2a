"""A head learned from the team's labels: a logistic regression on what other detectors find in an answer."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from calibrate import workspace
from calibrate.detectors.base import Detector, abstained, failed, missing, scored
from calibrate.detectors.shared.sentence_values import STATISTICS, sentence_statistics
from calibrate.errors import TouchstoneError
from calibrate.types import Evidence, FlagWhen, HeadBase, LearnedHead, Score, Trace

NAME = "learned"
NO_HEAD = "no head is fitted to labels yet: `learn --save`, or Learn from labels on the Combine page"
SHOWN = 5
"""Pieces of evidence of the detector that speaks most against the answer."""


@dataclass(frozen=True)
class Learned:
    """Reads what other detectors find, sentence by sentence, through a logistic regression fitted to the team's labels.
    A high value means that answers like this one were labelled hallucinated.

    Needs a head: `python -m calibrate learn --save`, which compares it with the best single detector first. Runs the
    detectors that the head reads (none that asks a chat endpoint). Value: P(hallucinated) among traffic like that of
    the labels. A detector that has no score of an answer counts as its mean, and its absence has a weight of its own.
    The answer's length is not read: it recognises a model, not a mistake. Labels that fitted the head do not count for
    its figures.
    """

    name: ClassVar[str] = NAME
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Learned from labels"
    unit: ClassVar[str] = "probability of a hallucination, by a head fitted to labels"
    needs: ClassVar[frozenset[str]] = frozenset({"answer"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5

    def revision(self) -> str:
        """The digest of the head: its labels, its features and the detectors behind them."""
        head = workspace.current().head
        return head.digest if head else ""

    def unavailable(self) -> str | None:
        head = workspace.current().head
        if head is None:
            return NO_HEAD
        return next(filter(None, (_find_problem(base) for base in head.bases)), None)

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        head, why = workspace.current().head, self.unavailable()
        if head is None or why:
            for trace in traces:
                yield abstained(trace, why or NO_HEAD)
            return
        found_by = {base.name: _score_base(_make(base), traces) for base in head.bases}
        for place, trace in enumerate(traces):
            yield _judge(head, trace, {name: scores[place] for name, scores in found_by.items()})


def _make(base: HeadBase) -> Detector:
    from calibrate import registry

    return registry.make(base.name, json.loads(base.params))


def _find_problem(base: HeadBase) -> str | None:
    """Why this process cannot compute what the head reads, and the remedy; None if it can. Loads no model."""
    try:
        detector = _make(base)
        if why := detector.unavailable():
            return f"its head reads {base.name}: {why}"
        actual = detector.version, detector.revision()
    except (TouchstoneError, ValueError) as error:
        return f"its head reads {base.name}, which cannot be made: {error}; learn again (`learn --save`)"
    for aspect, fitted, here in zip(("version", "revision"), (base.version, base.revision), actual, strict=True):
        if fitted != here:
            return (
                f"its head was fitted on {base.name} of {aspect} {fitted or '(none)'}; here it is {here or '(none)'}: "
                "install what it was fitted on, or run the detectors and learn again (`learn --save`)"
            )
    return None


def _score_base(detector: Detector, traces: Sequence[Trace]) -> list[Score]:
    """One score for each trace, abstained where the trace lacks what the detector needs."""
    able = [trace for trace in traces if not missing(detector.needs, trace)]
    scores = iter(list(detector.score(able)))
    return [
        abstained(trace, reason) if (reason := missing(detector.needs, trace)) else next(scores) for trace in traces
    ]


def _judge(head: LearnedHead, trace: Trace, scores: dict[str, Score]) -> Score:
    """The head's probability. An error of a base detector is no absence: the trace has no score then."""
    if why := missing(Learned.needs, trace):
        return abstained(trace, why)
    if broken := next((name for name, score in scores.items() if score.status == "failed"), None):
        return failed(trace, f"{broken}: {scores[broken].reason}")
    added = {base.name: _add(base, scores[base.name]) for base in head.bases}
    if all(scores[name].value is None for name in added):
        reasons = sorted({score.reason or score.status for score in scores.values()})
        return abstained(trace, f"none of the detectors that its head reads has a score: {'; '.join(reasons)[:200]}")
    odds = head.intercept + math.fsum(added.values())
    return scored(trace, 0.5 * (1.0 + math.tanh(odds / 2.0)), _explain(added, scores))


def _add(base: HeadBase, score: Score) -> float:
    """What one detector adds to the log odds."""
    cls = type(_make(base))
    values = sentence_statistics(score, flag_when=cls.flag_when, usual=cls.usual_threshold)
    if values is None:
        return base.missing
    at = dict(zip(STATISTICS, values, strict=True))
    return math.fsum(
        feature.coefficient * (at[feature.statistic] - feature.mean) / feature.scale for feature in base.features
    )


def _explain(added: dict[str, float], scores: dict[str, Score]) -> list[Evidence]:
    """What each detector adds, the largest first, then what the one that speaks most against the answer points to."""
    from calibrate import registry

    pieces = []
    for name, value in sorted(added.items(), key=lambda item: -abs(item[1])):
        score = scores[name].value
        what = "no score" if score is None else f"its score is {score:.3g}"
        pieces.append(Evidence(f"{registry.get(name).title} adds {value:+.2f} to the log odds; {what}", value))
    against = max(added, key=lambda name: added[name])
    if added[against] > 0:
        pieces += [piece for piece in scores[against].evidence if piece.start is not None][:SHOWN]
    return pieces
