"""Run the detectors of a release as the release configures them.

A threshold is only valid for scores of the same detector version, parameters and model revision. Where this process
cannot compute those, the score is missing, with a reason.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from calibrate import workspace
from calibrate.errors import BadInput, TouchstoneError
from calibrate.runtime import notices, rules
from calibrate.runtime.decision import Decision, OnMissing, check_on_missing, decide
from calibrate.runtime.live import Live, current
from calibrate.runtime.validation import describe_type, find_fault
from calibrate.thresholds import baselines
from calibrate.thresholds.ensembles import list_members
from calibrate.thresholds.model import DetectorEntry, Sampling, ThresholdsFile
from calibrate.types import Baseline, Score, ScoreStatus, Trace

if TYPE_CHECKING:
    from calibrate.detectors.base import Detector

log = logging.getLogger("touchstone")

RETRY = 60.0
"""Seconds after which a detector that cannot score is tried again: its model may have been installed."""

CachedScores = Callable[[str, Sequence[Trace]], Sequence[Score | None]]
"""Called once per detector with its name and traces; returns the score of each trace that has one already, or None."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of one trace by the detectors of a release.

    Attributes
    ----------
    trace : Trace
    file : ThresholdsFile
        The release. One for the whole batch, even if a newer one is loaded meanwhile.
    scores : dict of str to Score
        For every detector that was to run: a value, or the reason why there is none.
    seconds : dict of str to float
        For every detector that ran: its time for the batch divided by the traces of the batch.
    skipped : dict of str to str
        For every detector that was not to run on this trace, why: its sampling, or a cascade that did not need it.
    fault : str or None
        What is wrong with the trace itself: a field of a wrong type. Nothing is scored then.
    on_missing : {"review", "accept", "reject"}
        The verdict if nothing could be scored.
    """

    trace: Trace
    file: ThresholdsFile
    scores: dict[str, Score]
    seconds: dict[str, float]
    skipped: dict[str, str] = field(default_factory=dict)
    fault: str | None = None
    on_missing: OnMissing = "review"

    @property
    def numbers(self) -> dict[str, float]:
        """The scores that have a value, by detector, in its own units."""
        return {name: score.value for name, score in self.scores.items() if score.value is not None}

    @property
    def decision(self) -> Decision:
        """The release's decision on these scores.

        An answer that declines to answer, and one that the release's sampling leaves out, is not unscored.
        """
        numbers = self.numbers
        if numbers:
            return decide(self.file, numbers, on_missing=self.on_missing)
        declines = any(score.status == "refusal" for score in self.scores.values())
        left_out = bool(self.skipped) and not self.scores
        skipped = [rule.detector for rule in self.file.rules] if declines or left_out else list(self.skipped)
        decision = decide(self.file, numbers, on_missing=self.on_missing, skipped=skipped)
        if decision.unscored:
            return replace(decision, reasons=(f"nothing was scored: {self.fault or self._explain_missing()}",))
        if decision.missing:
            why = "the answer declines to answer" if declines else "; ".join(sorted({*self.skipped.values()}))
            return replace(decision, reasons=(f"nothing was to be scored: {why}",))
        return decision

    def _explain_missing(self) -> str:
        """Each reason once, with the detectors that gave it: "no sources (nli, rouge_l); no schema (schema)"."""
        names: dict[str, list[str]] = {}
        for name, score in sorted(self.scores.items()):
            names.setdefault(score.reason or score.status, []).append(name)
        reasons = [f"{reason} ({', '.join(detectors)})" for reason, detectors in names.items()]
        return "; ".join(reasons) or "no detector of the release runs here"


class Scorer:
    """Run the detectors of a release over traces, in the caller's thread.

    If the team has its own prompts or lists of refusals, call `calibrate.workspace.use` first: without them the
    revisions differ and the detectors concerned do not score.

    Parameters
    ----------
    thresholds : ThresholdsFile or Live
        What `load` returned.
    detectors : sequence of str, optional
        Run only these detectors of the release.
    on_missing : {"review", "accept", "reject"}
        The verdict on an answer of which nothing could be scored.

    Raises
    ------
    BadInput
        For an impossible setting.
    """

    def __init__(
        self,
        thresholds: ThresholdsFile | Live,
        *,
        detectors: Sequence[str] | None = None,
        on_missing: OnMissing = "review",
    ) -> None:
        if not isinstance(thresholds, (ThresholdsFile, Live)):
            raise BadInput(f"thresholds is {describe_type(thresholds)}; give what `load` returns")
        named = isinstance(detectors, Collection) and all(isinstance(name, str) for name in detectors)
        if isinstance(detectors, str) or not (detectors is None or named):
            raise BadInput(f"detectors cannot be {detectors!r}; give a list of names")
        check_on_missing(on_missing)
        self._thresholds, self._on_missing = thresholds, on_missing
        self._selected = None if detectors is None else frozenset(detectors)
        self._reported: set[tuple[int, str, str]] = set()
        self._plan: _Plan | None = None

    def prepare(self) -> None:
        """Import what the first trace would wait for, and log which detectors cannot score in this process.

        The first call of `score` checks them again: the team's own prompts may be put in place until then.
        """
        from calibrate.engines import run  # noqa: F401

        file = current(self._thresholds)
        for name in sorted((self._selected or frozenset()) - {rule.detector for rule in file.rules}):
            self._report_once(file, name, f"release v{file.version} does not have it; it has {_list_detectors(file)}")
        self._plan_detectors(file)
        self._plan = None

    def score(self, traces: Sequence[Trace], *, cached: CachedScores | None = None) -> list[Scored]:
        """Score traces, whatever the detectors do.

        Parameters
        ----------
        traces : sequence of Trace
        cached : callable, optional
            Called once per detector with its name and traces; returns one Score or None for each. A score from here
            counts even if this process could not compute it.

        Returns
        -------
        list of Scored
            One for each trace, in order.
        """
        file = current(self._thresholds)
        results = [
            Scored(trace, file, {}, {}, fault=find_fault(trace), on_missing=self._on_missing) for trace in traces
        ]
        for problem in dict.fromkeys(result.fault for result in results if result.fault is not None):
            self._report_once(file, "a trace", problem)
        for planned in self._plan_detectors(file):
            pending = []
            for result in results:
                if result.fault is not None:
                    result.scores[planned.name] = Score(
                        str(getattr(result.trace, "id", "")), None, result.fault, "failed"
                    )
                elif (reason := planned.reason_to_skip(result)) is None:
                    pending.append(result)
                else:
                    result.skipped[planned.name] = reason
            self._run_detector(planned, _use_cached(planned.name, pending, cached) if cached else pending)
        for result in results:
            _notice_unscored(result)
        return results

    def _plan_detectors(self, file: ThresholdsFile) -> list[_PlannedDetector]:
        """The detectors to run, those that depend on others' scores last. Cached until the release changes."""
        now, plan = time.monotonic(), self._plan
        if plan is not None and plan.file is file and now < plan.good_until:
            plan.put_in_place()
            return plan.detectors
        plan = _Plan(file, baselines.from_json(file.baselines), [], now)
        plan.put_in_place()
        names = (rule.detector for rule in file.rules if self._selected is None or rule.detector in self._selected)
        detectors = sorted((_plan_detector(file, name) for name in names), key=lambda planned: bool(planned.cascades))
        for planned in detectors:
            if planned.problem is not None:
                self._report_once(file, planned.name, planned.problem)
        good_until = now + RETRY if any(planned.problem is not None for planned in detectors) else math.inf
        self._plan = replace(plan, detectors=detectors, good_until=good_until)
        return detectors

    def _run_detector(self, planned: _PlannedDetector, pending: Sequence[Scored]) -> None:
        if planned.detector is None:
            for result in pending:
                result.scores[planned.name] = Score(result.trace.id, None, planned.problem, planned.status)
        elif pending:
            from calibrate.engines.run import score_batch

            began = time.perf_counter()
            scores = score_batch(planned.detector, [result.trace for result in pending])
            seconds = (time.perf_counter() - began) / len(pending)
            for result, score in zip(pending, scores, strict=True):
                result.scores[planned.name], result.seconds[planned.name] = score, seconds
                if score.status == "failed":
                    reason = score.reason or "no reason given"
                    remedy = _suggest_install(reason)
                    self._report_once(
                        result.file, planned.name, reason + remedy, kind=None if remedy else "failed on a trace"
                    )

    def _report_once(self, file: ThresholdsFile, name: str, problem: str, *, kind: str | None = None) -> None:
        """Log a problem once per release. With a `kind`, only the first problem of that kind is logged."""
        key = (file.version, name, kind or problem)
        if key not in self._reported:
            self._reported.add(key)
            log.warning("%s %s: %s", name, kind or "gives no score", problem)


def _list_detectors(file: ThresholdsFile) -> str:
    return ", ".join(rule.detector for rule in file.rules) or "none"


@dataclass(frozen=True, slots=True)
class _Plan:
    """The detectors of a release, constructed. `good_until` is a time.monotonic()."""

    file: ThresholdsFile
    baselines: Mapping[tuple[str, str], Baseline]
    detectors: list[_PlannedDetector]
    good_until: float

    def put_in_place(self) -> None:
        """Let detectors normalise by the release's baselines. If it has none, this process's own stay."""
        if self.baselines and self.baselines != workspace.current().baselines:
            workspace.use(replace(workspace.current(), baselines=self.baselines))


@dataclass(frozen=True, slots=True)
class _PlannedDetector:
    """A detector of a release. If it cannot score, `detector` is None and `problem` and `status` say why.

    `cascades` are the rules that read it only behind their filters; empty if anything reads it on every trace.
    """

    name: str
    sampling: Sampling | None
    cascades: tuple[Mapping[str, Any], ...]
    detector: Detector | None = None
    problem: str | None = None
    status: ScoreStatus = "failed"

    def reason_to_skip(self, result: Scored) -> str | None:
        """Say why the detector is not to run on this trace, given the others' scores. None if it is."""
        if self.sampling is not None and not is_sampled(self.sampling, self.name, result.trace):
            return f"runs on {self.sampling}"
        if self.cascades and not any(rules.passes(rule, result.numbers) for rule in self.cascades):
            return "the filter of its cascade does not pass"
        return None


def is_sampled(sampling: Sampling, detector: str, trace: Trace) -> bool:
    """Decide whether production runs a detector on a trace. Every process decides alike.

    Parameters
    ----------
    sampling : Sampling
        The detector's sampling in the release.
    detector : str
        Its name.
    trace : Trace

    Returns
    -------
    bool
    """
    attributes = trace.attributes
    if any(_attribute_text(attributes.get(name)) != value for name, value in sampling.only_when.items()):
        return False
    digest = blake2b(f"{detector}\0{trace.id}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) < sampling.rate * 2**64


def revision_of(detector: Detector) -> str:
    """Name the revision of everything behind a score but the detector itself, as releases record it.

    That is the models, and the team's own lists of refusals if the detector skips refusals: they decide which answers
    are scored at all.

    Parameters
    ----------
    detector : Detector

    Returns
    -------
    str
        Empty if the detector has no model and the lists are the packaged ones.
    """
    from calibrate.backends.text import refusals

    lists = "" if getattr(type(detector), "scores_refusals", False) else refusals.version()
    return "+".join(filter(None, (detector.revision(), lists and f"refusals:{lists}")))


def _notice_unscored(result: Scored) -> None:
    """Log the first answer of which nothing could be scored, and the first empty one."""
    if result.numbers:
        return
    kind: notices.Kind = "unscored" if result.fault or result.trace.answer.strip() else "empty"
    if notices.is_new(kind) and (decision := result.decision).unscored:
        outcome = f"its verdict is {decision.verdict}, as on_missing={result.on_missing!r} says"
        reason = decision.reasons[0].removeprefix("nothing was scored: ")
        notices.log_once(kind, f"{reason}; {outcome}")


def _use_cached(name: str, results: Sequence[Scored], cached: CachedScores) -> list[Scored]:
    """Fill in the scores that exist already. Returns the results that still lack one."""
    for result, score in zip(results, cached(name, [result.trace for result in results]), strict=True):
        if score is not None:
            result.scores[name] = score
    return [result for result in results if name not in result.scores]


def _plan_detector(file: ThresholdsFile, name: str) -> _PlannedDetector:
    entry = file.detectors[name]
    planned = _PlannedDetector(name, entry.sampling, _find_cascades(file, name))
    try:
        from calibrate import registry

        detector = registry.make(name, entry.params)
        if (problem := detector.unavailable()) is not None:
            return replace(planned, problem=problem, status="abstained")
        problem = _find_mismatch(detector, entry)
    except TouchstoneError as error:
        return replace(planned, problem=str(error))
    except Exception as error:  # a detector from another package
        return replace(planned, problem=f"{type(error).__name__}: {str(error)[:200]}")
    return replace(planned, problem=problem) if problem else replace(planned, detector=detector)


def _find_mismatch(detector: Detector, entry: DetectorEntry) -> str | None:
    for aspect, actual in (("version", detector.version), ("revision", revision_of(detector))):
        released = getattr(entry, aspect)
        if actual != released:
            return (
                f"the threshold was set on scores of {aspect} {released or '(none)'}; here it is {actual or '(none)'}. "
                "Install what the release names, or recalibrate and release"
            )
    return None


def _suggest_install(reason: str) -> str:
    """Say what to install if a package is missing that the detector imports only when it scores; else ""."""
    match = re.match(r"(?:ModuleNotFoundError|ImportError): No module named '(\w+)", reason)
    if match is None:
        return ""
    return f". Install it: pip install {'touchstone[lexical]' if match[1] == 'rapidfuzz' else match[1]}"


def _find_cascades(file: ThresholdsFile, name: str) -> tuple[Mapping[str, Any], ...]:
    readers = [entry.rule for _, entry in file.live_ensembles if name in entry.members]
    behind = all(
        rule["form"] == "cascade"
        and rule["expensive"] == name
        and all(member.detector != name for member in list_members(rule["filter"]))
        for rule in readers
    )
    return tuple(readers) if behind and file.detectors[name].tier == "off" else ()


def _attribute_text(value: object) -> str | None:
    """Convert an attribute to the text it is compared as: booleans and numbers as JSON writes them."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
