"""What came of a run: a detector that failed on every trace leaves it incomplete."""

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
    abstained on the others. `why` is the most frequent reason for which it failed."""

    detector: str
    failed: int
    tried: int
    why: str


def failures(run: Run) -> tuple[Failure, ...]:
    """The detectors that failed on every trace, by name."""
    return tuple(
        Failure(
            name, tally["failed"], sum(tally.get(part, 0) for part in UNSCORED), next(iter(tally.get("why", {})), "")
        )
        for name, tally in sorted(run.counts.items())
        if failed_everywhere(tally)
    )


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
    """The detectors that failed everywhere, as the run had them."""
    names = {failure.detector for failure in failures(run)}
    return [spec for spec in run.detectors if spec["name"] in names]
