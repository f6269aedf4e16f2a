"""Report the processor's health, and how often each detector flags, through the OpenTelemetry metrics API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from opentelemetry.metrics import CallbackOptions, Observation

from calibrate.runtime.decision import Decision
from calibrate.runtime.otel.intake import Intake
from calibrate.runtime.scoring import Scored

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter


class Metrics:
    """The instruments.

    touchstone.queue.depth        spans that wait (gauge)
    touchstone.answers            LLM spans by `outcome`: scored, unscored, nested, dropped, failed, empty (counter)
    touchstone.detector.duration  seconds that a detector took for an answer, by `detector` and `status` (histogram)
    touchstone.flags              by `detector` (or ensemble) and `tier` (counter)

    `intake` returns the current queue: a forked process has another. It may return None once the processor is gone.
    """

    def __init__(self, meter: Meter, intake: Callable[[], Intake | None]) -> None:
        self._intake = intake
        meter.create_observable_gauge(
            "touchstone.queue.depth", [self._depth], unit="{span}", description="Spans that wait to be scored"
        )
        meter.create_observable_counter(
            "touchstone.answers", [self._answers], unit="{answer}", description="LLM spans by what became of them"
        )
        self._duration = meter.create_histogram(
            "touchstone.detector.duration", unit="s", description="Time that a detector took for an answer"
        )
        self._flags = meter.create_counter("touchstone.flags", unit="{flag}", description="Flags by detector and tier")

    def record(self, result: Scored, decision: Decision) -> None:
        for name, seconds in result.seconds.items():
            self._duration.record(seconds, {"detector": name, "status": result.scores[name].status})
        for name in decision.flags:
            entry = result.file.detectors.get(name)
            self._flags.add(1, {"detector": name, "tier": entry.tier if entry else decision.tier})

    def _depth(self, _: CallbackOptions) -> Iterable[Observation]:
        intake = self._intake()
        return [Observation(intake.depth)] if intake else []

    def _answers(self, _: CallbackOptions) -> Iterable[Observation]:
        intake = self._intake()
        counts = asdict(intake.counts()) if intake else {}
        outcomes = ("scored", "unscored", "nested", "dropped", "failed", "empty")
        return [Observation(counts[outcome], {"outcome": outcome}) for outcome in outcomes if counts]
