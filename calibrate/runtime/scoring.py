"""Run the detectors of a release as the release configures them.

A threshold is only valid for scores of the same detector version, parameters and model revision. Where this process
cannot compute those, the score is missing, with a reason.
"""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from calibrate import deadlines
from calibrate.errors import BadInput
from calibrate.runtime import notices
from calibrate.runtime.crew import Check, Step, crew
from calibrate.runtime.decision import Decision, OnMissing, check_on_missing, decide, segments_of
from calibrate.runtime.live import Live, current
from calibrate.runtime.planning import NOT_GIVEN, Plan, PlannedDetector, is_sampled, plan_detector
from calibrate.runtime.validation import describe_type, find_fault
from calibrate.thresholds import baselines
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Score, Trace

if TYPE_CHECKING:
    from calibrate.detectors.base import Detector

log = logging.getLogger("touchstone")

RETRY = 60.0
"""Seconds after which a detector that cannot score is tried again: its model may have been installed."""

HOW_TO_PASS = ": pass it in, as in guard.check(trace, scores={name: value})"
NOT_PASSED = "had no score on an answer"

PassedScores = Mapping[str, float | None]
"""Scores of one trace that were computed elsewhere, by detector, in its own units."""

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
    unknown : mapping of str to float
        Scores that were passed in for detectors that the release does not have.
    """

    trace: Trace
    file: ThresholdsFile
    scores: dict[str, Score]
    seconds: dict[str, float]
    skipped: dict[str, str] = field(default_factory=dict)
    fault: str | None = None
    on_missing: OnMissing = "review"
    unknown: Mapping[str, float] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, float]:
        """The scores that have a value, by detector, in its own units."""
        return {name: score.value for name, score in self.scores.items() if score.value is not None}

    @property
    def segments(self) -> dict[str, str | None]:
        """The segments that the trace is of, by what tells those of the release apart."""
        return {} if self.fault is not None else segments_of(self.file, self.trace)

    @property
    def decision(self) -> Decision:
        """The release's decision on these scores.

        An answer that declines to answer, and one that the release's sampling leaves out, is not unscored.
        """
        numbers = self.numbers
        if numbers:
            scores = {**self.unknown, **numbers}
            return decide(self.file, scores, on_missing=self.on_missing, segments=self.segments)
        declines = any(score.status == "refusal" for score in self.scores.values())
        left_out = bool(self.skipped) and not self.scores
        skipped = [rule.detector for rule in self.file.rules] if declines or left_out else list(self.skipped)
        decision = decide(self.file, self.unknown, on_missing=self.on_missing, skipped=skipped)
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
    """Run the detectors of a release over traces.

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
        self._plan: Plan | None = None
        self._lock, self._beside = threading.Lock(), 0.0

    @property
    def seconds_beside(self) -> float:
        """Seconds of a core that were spent on scoring in other threads than the caller's."""
        return self._beside

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

    def score(
        self,
        traces: Sequence[Trace],
        *,
        cached: CachedScores | None = None,
        passed: Sequence[PassedScores | None] | None = None,
        deadline: float | None = None,
    ) -> list[Scored]:
        """Score traces, whatever the detectors do.

        Parameters
        ----------
        traces : sequence of Trace
        cached : callable, optional
            Called once per detector with its name and traces; returns one Score or None for each. A score from here
            counts even if this process could not compute it.
        passed : sequence of mapping of str to float, optional
            For each trace, scores that the caller has already, by detector: those of external detectors, and of any
            other that is not to be computed here. What is no finite number counts as no score.
        deadline : float, optional
            Seconds that this may take, above 0. The detectors run in other threads then, and what is not scored in
            time is missing. Without it they run in the caller's thread, for as long as they take.

        Returns
        -------
        list of Scored
            One for each trace, in order.
        """
        file = current(self._thresholds)
        results = [
            Scored(trace, file, {}, {}, fault=find_fault(trace), on_missing=self._on_missing) for trace in traces
        ]
        if passed is not None:
            results = [self._take_passed(result, given) for result, given in zip(results, passed, strict=True)]
        for problem in dict.fromkeys(result.fault for result in results if result.fault is not None):
            self._report_once(file, "a trace", problem)
        if deadline is None:
            for step in self._plan_steps(file, results, cached):
                step.run()
        else:
            until = time.monotonic() + deadline
            check = crew.do(lambda: self._plan_beside(file, results, cached), until=until)
            if check.undone:
                results = [self._fill_in(result, check, deadline) for result in results]
        for result in results:
            if cached is None or all(score.reason != NOT_GIVEN for score in result.scores.values()):
                _notice_unscored(result)
        return results

    def _take_passed(self, result: Scored, given: PassedScores | None) -> Scored:
        """The result with the scores that the caller has already."""
        if given is None or result.fault is not None:
            return result
        if not isinstance(given, Mapping):
            self._report_once(result.file, "scores", f"passed in as {describe_type(given)}; give names and numbers")
            return result
        unknown = {}
        for name, value in given.items():
            if (score := _score_of(result.trace, value)) is None:
                continue
            if name in result.file.detectors:
                result.scores[name] = score
                if score.status == "failed":
                    self._report_once(result.file, name, f"{score.reason}")
            elif score.value is not None:
                unknown[str(name)] = score.value
        return replace(result, unknown=unknown)

    def _plan_beside(self, *of_batch: Any) -> list[Step]:
        """The same steps, with what they compute counted."""
        steps = self._count(partial(self._plan_steps, *of_batch))
        return [replace(step, run=partial(self._count, step.run)) for step in steps]

    def _count(self, run: Callable[[], Any]) -> Any:
        began = time.thread_time()
        try:
            return run()
        finally:
            with self._lock:
                self._beside += time.thread_time() - began

    def _plan_steps(self, file: ThresholdsFile, results: Sequence[Scored], cached: CachedScores | None) -> list[Step]:
        """A step for each detector. Those that depend on others' scores are last."""
        return [
            Step(planned.name, partial(self._do_step, planned, results, cached), last=bool(planned.cascades))
            for planned in self._plan_detectors(file)
        ]

    def _do_step(self, planned: PlannedDetector, results: Sequence[Scored], cached: CachedScores | None) -> None:
        pending = []
        for result in results:
            if planned.name in result.scores:
                continue  # it was passed in
            if result.fault is not None:
                result.scores[planned.name] = Score(str(getattr(result.trace, "id", "")), None, result.fault, "failed")
            elif (reason := planned.reason_to_skip(result)) is None:
                pending.append(result)
            else:
                result.skipped[planned.name] = reason
        rest = _use_cached(planned.name, pending, cached) if cached else pending
        self._run_detector(planned, rest, stored=cached is not None)

    def _fill_in(self, result: Scored, check: Check, seconds: float) -> Scored:
        """A copy of the result as it is now, in which every score that is missing has its reason.

        A copy, because a detector that was left alone may still write to the original.
        """
        scores, skipped = dict(result.scores), dict(result.skipped)
        for name in self._names(result.file):
            sampling = result.file.detectors[name].sampling
            if name in scores or name in skipped:
                continue
            if result.fault is None and sampling is not None and not is_sampled(sampling, name, result.trace):
                skipped[name] = f"runs on {sampling}"
                continue
            kind, reason = _explain_undone(check, name, seconds)
            scores[name] = Score(str(getattr(result.trace, "id", "")), None, reason, "failed")
            self._report_once(result.file, name, reason, kind=kind)
        return replace(result, scores=scores, skipped=skipped, seconds=dict(result.seconds))

    def _names(self, file: ThresholdsFile) -> list[str]:
        return [rule.detector for rule in file.rules if self._selected is None or rule.detector in self._selected]

    def _plan_detectors(self, file: ThresholdsFile) -> list[PlannedDetector]:
        """The detectors to run, those that depend on others' scores last. Cached until the release changes."""
        now, plan = time.monotonic(), self._plan
        if plan is not None and plan.file is file and now < plan.good_until:
            plan.put_in_place()
            return plan.detectors
        plan = Plan(file, baselines.from_json(file.baselines), [], now, baselines.head_from_json(file.baselines))
        plan.put_in_place()
        detectors = [plan_detector(file, name) for name in self._names(file)]
        detectors.sort(key=lambda planned: bool(planned.cascades))
        for planned in detectors:
            if planned.problem is not None and not planned.is_external:  # that one is for each answer to say
                self._report_once(file, planned.name, planned.problem)
        good_until = (
            now + RETRY
            if any(planned.problem is not None and not planned.is_external for planned in detectors)
            else math.inf
        )
        self._plan = replace(plan, detectors=detectors, good_until=good_until)
        return detectors

    def _run_detector(self, planned: PlannedDetector, pending: Sequence[Scored], *, stored: bool) -> None:
        """`stored`: scores come from a store, so what is not there may come yet, and nobody is to pass it in."""
        if planned.detector is None:
            if planned.is_external and pending and not stored:
                self._report_once(pending[0].file, planned.name, f"{planned.problem}{HOW_TO_PASS}", kind=NOT_PASSED)
            for result in pending:
                result.scores[planned.name] = Score(result.trace.id, None, planned.problem, planned.status)
        elif pending:
            self._score_pending(planned.name, planned.detector, pending)

    def _score_pending(self, name: str, detector: Detector, pending: Sequence[Scored]) -> None:
        """Score what is pending. Ends early once the deadline has passed: nobody waits for the rest."""
        from calibrate.engines.run import score_stream

        began = time.perf_counter()
        with closing(score_stream(detector, [result.trace for result in pending])) as scores:
            for result, score in zip(pending, scores, strict=True):
                result.scores[name] = score
                if score.status == "failed":
                    reason = score.reason or "no reason given"
                    remedy = _suggest_install(reason)
                    self._report_once(result.file, name, reason + remedy, kind=None if remedy else "failed on a trace")
                if deadlines.left() <= 0:
                    break
        seconds = (time.perf_counter() - began) / len(pending)
        for result in pending:
            result.seconds[name] = seconds

    def _report_once(self, file: ThresholdsFile, name: str, problem: str, *, kind: str | None = None) -> None:
        """Log a problem once per release. With a `kind`, only the first problem of that kind is logged."""
        key = (file.version, name, kind or problem)
        if key not in self._reported:
            self._reported.add(key)
            log.warning("%s %s: %s", name, kind or "gives no score", problem)


def _list_detectors(file: ThresholdsFile) -> str:
    return ", ".join(rule.detector for rule in file.rules) or "none"


def _score_of(trace: Trace, value: object) -> Score | None:
    """A score that was passed in; None for one without a value, and with a reason for what is no number at all."""
    if value is None:
        return None
    try:
        number = None if isinstance(value, (bool, str, bytes)) else float(value)  # type: ignore[arg-type]
    except OverflowError:
        return None
    except (TypeError, ValueError):
        number = None
    if number is None:
        return Score(trace.id, None, f"the score passed in is {describe_type(value)}, and no number", "failed")
    return Score(trace.id, number) if math.isfinite(number) else None


def _explain_undone(check: Check, name: str, seconds: float) -> tuple[str, str]:
    """Why a detector was not done, as a kind for the log and a reason."""
    key = name if name in check.undone else ""
    fate = check.undone.get(key)
    if fate == "raised":
        error = check.errors[key]
        return "failed on a trace", f"{type(error).__name__}: {str(error)[:200]}"
    if fate == "refused":
        return "is not begun", "too many earlier calls have not ended, each beyond its deadline"
    return "was late", f"not scored within the deadline of {seconds:g} s"


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


def _suggest_install(reason: str) -> str:
    """Say what to install if a package is missing that the detector imports only when it scores; else ""."""
    match = re.match(r"(?:ModuleNotFoundError|ImportError): No module named '(\w+)", reason)
    if match is None:
        return ""
    return f". Install it: pip install {'touchstone[lexical]' if match[1] == 'rapidfuzz' else match[1]}"
