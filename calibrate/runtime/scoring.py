"""Running the detectors that a release asks for, as it asks for them.

A threshold is about the scores of one version, one set of parameters and one revision of the models behind them. Where
this process cannot make those, there is no score, and a reason.
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
from calibrate.runtime import rules
from calibrate.runtime.decision import Decision, decide
from calibrate.runtime.given import fault, kind_of
from calibrate.runtime.live import Live, current
from calibrate.thresholds import baselines
from calibrate.thresholds.ensembles import reads
from calibrate.thresholds.model import DetectorEntry, Sampling, ThresholdsFile
from calibrate.types import Baseline, Score, ScoreStatus, Trace

if TYPE_CHECKING:
    from calibrate.detectors.base import Detector

log = logging.getLogger("touchstone")

RETRY = 60.0
"""Seconds after which a detector that could not score here is tried again: its model may have come."""

Known = Callable[[str, Sequence[Trace]], Sequence[Score | None]]
"""Asked once a detector for the scores of these traces that need not be made: each, or None."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What the detectors of a release made of one trace.

    file       the release they were run for; the same for a whole batch, even where a reload happens in between
    scores     by detector, a Score with a value or with a reason why there is none, for each that was to run here
    seconds    by detector, how long it took for this trace (its batch's time, shared out); only of those that ran
    skipped    by detector, why it was not to run on this trace: its sampling, or a cascade that had no need of it
    fault      what is wrong with the trace itself, where a field is of a wrong type: then nothing is scored
    """

    trace: Trace
    file: ThresholdsFile
    scores: dict[str, Score]
    seconds: dict[str, float]
    skipped: dict[str, str] = field(default_factory=dict)
    fault: str | None = None

    @property
    def numbers(self) -> dict[str, float]:
        """The scores that are numbers."""
        return {name: score.value for name, score in self.scores.items() if score.value is not None}

    @property
    def decision(self) -> Decision:
        """What the release says to these scores."""
        decision = decide(self.file, self.numbers)
        return decision if self.fault is None else replace(decision, reasons=(f"nothing was scored: {self.fault}",))


class Scorer:
    """Runs the detectors of a release over traces, in the caller's thread.

    The team's own prompts and lists of refusals, where it has any, are to be put in place first
    (`calibrate.workspace.use`); without them the revisions differ, and the detectors concerned do not score.
    """

    def __init__(self, thresholds: ThresholdsFile | Live, *, detectors: Sequence[str] | None = None) -> None:
        """`detectors` (names) restricts those of the release to these. Raises BadInput for a wrong setting."""
        if not isinstance(thresholds, (ThresholdsFile, Live)):
            raise BadInput(f"thresholds is {kind_of(thresholds)}; give what `load` returns")
        named = isinstance(detectors, Collection) and all(isinstance(name, str) for name in detectors)
        if isinstance(detectors, str) or not (detectors is None or named):
            raise BadInput(f"detectors cannot be {detectors!r}; give a list of names")
        self._thresholds = thresholds
        self._only = None if detectors is None else frozenset(detectors)
        self._said: set[tuple[int, str, str]] = set()
        self._plan: _Plan | None = None

    def prepare(self) -> None:
        """Does what the first trace would wait for: imports. Says which detectors cannot score here; at the first trace
        they are looked at again, as a team's own prompts may be put in place until then."""
        from calibrate import run  # noqa: F401

        file = current(self._thresholds)
        for name in sorted((self._only or frozenset()) - {rule.detector for rule in file.rules}):
            self._say(file, name, f"release v{file.version} does not ask it; it has {_names(file)}")
        self._asked(file)
        self._plan = None

    def score(self, traces: Sequence[Trace], *, known: Known | None = None) -> list[Scored]:
        """One Scored a trace, in order, whatever the detectors do. A score that is `known` is not made again; it counts
        even where this process could not make it."""
        file = current(self._thresholds)
        made = [Scored(trace, file, {}, {}, fault=fault(trace)) for trace in traces]
        for wrong in dict.fromkeys(one.fault for one in made if one.fault is not None):
            self._say(file, "a trace", wrong)
        for asked in self._asked(file):
            wanted = []
            for one in made:
                if one.fault is not None:
                    one.scores[asked.name] = Score(str(getattr(one.trace, "id", "")), None, one.fault, "failed")
                elif (why_not := asked.why_not(one)) is None:
                    wanted.append(one)
                else:
                    one.skipped[asked.name] = why_not
            self._run(asked, _unknown(asked.name, wanted, known) if known else wanted)
        return made

    def _asked(self, file: ThresholdsFile) -> list[_Asked]:
        """Those to run, the ones that wait for others' scores last. Kept until the release changes."""
        now, plan = time.monotonic(), self._plan
        if plan is not None and plan.file is file and now < plan.good_until:
            plan.put_in_place()
            return plan.asked
        plan = _Plan(file, baselines.from_json(file.baselines), [], now)
        plan.put_in_place()
        wanted = (rule.detector for rule in file.rules if self._only is None or rule.detector in self._only)
        found = sorted((_asked(file, name) for name in wanted), key=lambda asked: bool(asked.cascades))
        for asked in found:
            if asked.problem is not None:
                self._say(file, asked.name, asked.problem)
        good_until = now + RETRY if any(asked.problem is not None for asked in found) else math.inf
        self._plan = replace(plan, asked=found, good_until=good_until)
        return found

    def _run(self, asked: _Asked, wanted: Sequence[Scored]) -> None:
        if asked.detector is None:
            for one in wanted:
                one.scores[asked.name] = Score(one.trace.id, None, asked.problem, asked.status)
        elif wanted:
            from calibrate.run import score_batch

            began = time.perf_counter()
            found = score_batch(asked.detector, [one.trace for one in wanted])
            seconds = (time.perf_counter() - began) / len(wanted)
            for one, score in zip(wanted, found, strict=True):
                one.scores[asked.name], one.seconds[asked.name] = score, seconds
                if score.status == "failed":
                    reason = score.reason or "no reason given"
                    remedy = _remedy(reason)
                    self._say(one.file, asked.name, reason + remedy, kind=None if remedy else "failed on a trace")

    def _say(self, file: ThresholdsFile, name: str, problem: str, *, kind: str | None = None) -> None:
        """Once for a release and a problem; of what differs from trace to trace, the first."""
        key = (file.version, name, kind or problem)
        if key not in self._said:
            self._said.add(key)
            log.warning("%s %s: %s", name, kind or "gives no score", problem)


def _names(file: ThresholdsFile) -> str:
    return ", ".join(rule.detector for rule in file.rules) or "none"


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a release asks for, made ready. `good_until` is of time.monotonic()."""

    file: ThresholdsFile
    baselines: Mapping[tuple[str, str], Baseline]
    asked: list[_Asked]
    good_until: float

    def put_in_place(self) -> None:
        """The release's baselines, for detectors to normalise by; where it has none, this process's own stay."""
        if self.baselines and self.baselines != workspace.current().baselines:
            workspace.use(replace(workspace.current(), baselines=self.baselines))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A detector that a release asks for. Without a `detector`, `problem` and `status` say why. `cascades` are the
    rules that alone read it, each behind its filter; empty where somebody reads it on every trace."""

    name: str
    sampling: Sampling | None
    cascades: tuple[Mapping[str, Any], ...]
    detector: Detector | None = None
    problem: str | None = None
    status: ScoreStatus = "failed"

    def why_not(self, one: Scored) -> str | None:
        """Why it is not to run on this trace, which the others have scored; None when it is."""
        if self.sampling is not None and not is_sampled(self.sampling, self.name, one.trace):
            return f"runs on {self.sampling}"
        if self.cascades and not any(rules.passes(rule, one.numbers) for rule in self.cascades):
            return "the filter of its cascade does not pass"
        return None


def is_sampled(sampling: Sampling, detector: str, trace: Trace) -> bool:
    """Whether production runs the detector on this trace: the same answer for the same two, in every process."""
    known = trace.attributes
    if any(_text(known.get(name)) != value for name, value in sampling.only_when.items()):
        return False
    digest = blake2b(f"{detector}\0{trace.id}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) < sampling.rate * 2**64


def revision_of(detector: Detector) -> str:
    """The revision of the models behind a score as releases name it. A team's own lists of refusals belong to it,
    where the detector has refusals left out: they decide which answers are scored at all."""
    from calibrate.backends.text import refusals

    lists = "" if getattr(type(detector), "scores_refusals", False) else refusals.version()
    return "+".join(filter(None, (detector.revision(), lists and f"refusals:{lists}")))


def _unknown(name: str, wanted: Sequence[Scored], known: Known) -> list[Scored]:
    """Those whose score is not known; the others are given it."""
    for one, score in zip(wanted, known(name, [one.trace for one in wanted]), strict=True):
        if score is not None:
            one.scores[name] = score
    return [one for one in wanted if name not in one.scores]


def _asked(file: ThresholdsFile, name: str) -> _Asked:
    entry = file.detectors[name]
    one = _Asked(name, entry.sampling, _cascades(file, name))
    try:
        from calibrate import registry

        detector = registry.make(name, entry.params)
        if (why := detector.unavailable()) is not None:
            return replace(one, problem=why, status="abstained")
        problem = _differs(detector, entry)
    except TouchstoneError as error:
        return replace(one, problem=str(error))
    except Exception as error:  # a detector of somebody else's
        return replace(one, problem=f"{type(error).__name__}: {str(error)[:200]}")
    return replace(one, problem=problem) if problem else replace(one, detector=detector)


def _differs(detector: Detector, entry: DetectorEntry) -> str | None:
    for what, here in (("version", detector.version), ("revision", revision_of(detector))):
        then = getattr(entry, what)
        if here != then:
            return (
                f"the threshold was set on scores of {what} {then or '(none)'}; here it is {here or '(none)'}. "
                "Install what the release names, or recalibrate and release"
            )
    return None


def _remedy(reason: str) -> str:
    """What to install where a package is missing that a detector imports only when it scores; else nothing."""
    found = re.match(r"(?:ModuleNotFoundError|ImportError): No module named '(\w+)", reason)
    if found is None:
        return ""
    return f". Install it: pip install {'touchstone[lexical]' if found[1] == 'rapidfuzz' else found[1]}"


def _cascades(file: ThresholdsFile, name: str) -> tuple[Mapping[str, Any], ...]:
    readers = [entry.rule for _, entry in file.live_ensembles if name in entry.members]
    behind = all(
        rule["form"] == "cascade"
        and rule["expensive"] == name
        and all(one.detector != name for one in reads(rule["filter"]))
        for rule in readers
    )
    return tuple(readers) if behind and file.detectors[name].tier == "off" else ()


def _text(value: object) -> str | None:
    """An attribute as it is compared: booleans and numbers as JSON writes them."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
