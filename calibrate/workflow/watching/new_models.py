"""New models: what answers today's traffic and is unknown to the live release, with the labels that it needs."""

from __future__ import annotations

from dataclasses import dataclass

from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import TraceFilter
from calibrate.workflow.releasing.history import promised_precision, read_release
from calibrate.workflow.releasing.unknown_models import UnknownModel, unknown_models
from calibrate.workflow.sampling import sizing
from calibrate.workflow.sampling.sample import usual_design
from db import Store

WISH = 0.1
"""Half of the interval that a new model's precision is to be known to: enough to see whether a threshold still holds.
"""
_USUAL = 0.7  # the precision planned for where no threshold promises one


@dataclass(frozen=True, slots=True)
class NewModel:
    """A model that the release was made without. `labels` of its answers tell a precision to +/- WISH; None where it
    has answered less than that."""

    seen: UnknownModel
    labels: int | None


def new_models(store: Store) -> tuple[NewModel, ...]:
    """The models that the live release does not know, most traffic first; none without a release."""
    release = next(iter(store.releases.list(limit=1)), None)
    if release is None:
        return ()
    file = read_release(release)
    return tuple(NewModel(seen, _labels(store, file, seen.name)) for seen in unknown_models(store, release))


def _labels(store: Store, file: ThresholdsFile, model: str) -> int | None:
    """As the Draw page plans them: for the usual design, on all answers of the model."""
    where = TraceFilter(models=(model,), undated=False)
    entries = [entry for entry in file.detectors.values() if entry.tier != "off"]
    promised = max((promised_precision(entry) or 0.0 for entry in entries), default=0.0) or _USUAL
    rates = [rate for entry in entries if (rate := entry.metrics.flag_rate.value)]
    plan = sizing.plan(store, where, wish=WISH, precision=promised, prevalence=min(rates, default=sizing.PREVALENCE))
    return plan.labels.get(usual_design(store, where)) or plan.labels["random"]
