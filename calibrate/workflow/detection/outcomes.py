"""What came of a run: a detector that failed on every trace, or could not run, leaves it incomplete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from db import Store
from db.runs import Run, RunStatus

UNSCORED = ("failed", "abstained", "refusals", "reused")


@dataclass(frozen=True, slots=True)
class Failure:
    """A detector that failed, so that no trace of the run's scope has a score: on `failed` of the `tried`, as it
    abstained on the others. `why` is the most frequent reason for which it failed. `unavailable`: it could not run, was
    tried on no trace, and `why` is the remedy."""

    detector: str
    failed: int
    tried: int
    why: str
    unavailable: bool = False


def failures(run: Run) -> tuple[Failure, ...]:
    """The detectors that failed on every trace or could not run, by name."""
    return tuple(
        _failure_of(name, tally)
        for name, tally in sorted(run.counts.items())
        if failed_everywhere(tally) or tally.get("unavailable")
    )


def _failure_of(name: str, tally: Mapping[str, Any]) -> Failure:
    if why := tally.get("unavailable"):
        return Failure(name, 0, 0, why, unavailable=True)
    tried = sum(tally.get(part, 0) for part in UNSCORED)
    return Failure(name, tally["failed"], tried, next(iter(tally.get("why", {})), ""))


def failed_everywhere(tally: Mapping[str, Any]) -> bool:
    """Whether a run's tally of a detector says so. Older runs did not look at what was scored before them."""
    reached = tally.get("scored", 0) + tally.get("reused", 0)
    return bool(tally.get("failed_on_all", tally.get("failed", 0) and not reached))


def state(run: Run) -> RunStatus:
    """The run's status, `incomplete` for one of an older version too that was stored as done."""
    return "incomplete" if run.status == "done" and failures(run) else run.status


def has_scores(store: Store, scope: Mapping[str, Any], config_id: int) -> bool:
    """Whether any trace of the scope has a score of this configuration."""
    sample = store.samples.get(scope["sample"]) if "sample" in scope else None
    where: dict[str, Any] = {"sample_id": sample.id} if sample else {"labelled": bool(scope.get("labelled"))}
    tallies = store.coverage.tallies(**where, config_id=config_id).values()
    return any(status == "scored" for tally in tallies for status, _ in tally.counts)


def retry_specs(run: Run) -> Sequence[Mapping[str, Any]]:
    """The detectors that failed everywhere or could not run, as the run had them."""
    names = {failure.detector for failure in failures(run)}
    return [spec for spec in run.detectors if spec["name"] in names]
