"""Every score in the store, trace by trace, for somebody's own analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibrate.errors import BadInput
from calibrate.ingest.scores import ScoreRecord
from calibrate.workflow.detection.configurations import configs_by_detector, nothing_scored, resolve_config
from calibrate.workflow.evidence.basis import resolve_sample
from calibrate.workspace import current
from db import Store
from db.scores import Config


def chosen_configs(store: Store, detectors: Sequence[str], params: Mapping[str, Any]) -> list[Config]:
    """The configuration of each of these detectors; of no names, the default one of every detector that has scores,
    also where nobody has said yet which of them are suspicious.

    Raises BadInput for a detector without scores, and for parameters without one detector to which they belong.
    """
    if params and len(set(detectors)) != 1:
        raise BadInput("--param needs one --detector: the parameters of one are not those of another")
    if detectors:
        return [_stored(store, name) or resolve_config(store, name, params) for name in dict.fromkeys(detectors)]
    configs = [configs[-1] for configs in configs_by_detector(store).values()]
    configs += filter(None, (_stored(store, name) for name in sorted(current().external)))
    if not configs:
        raise nothing_scored()
    return configs


def _stored(store: Store, name: str) -> Config | None:
    """The imported scores of a detector that waits for its direction; None for any other."""
    external = current().external.get(name)
    configs = store.scores.configs(name) if external and external.flag_when is None else []
    return configs[-1] if configs else None


def records(store: Store, configs: Sequence[Config], *, sample: str | None = None) -> Iterator[ScoreRecord]:
    """Each configuration's scores in turn, read as they are taken; with a sample, of every member of it.

    Raises BadInput, at once, for an unknown sample.
    """
    drawn = resolve_sample(store, sample) if sample else None
    return (
        ScoreRecord(
            outcome.trace_id,
            outcome.gold,
            outcome.value,
            outcome.status or "not run",
            outcome.reason,
            config.name,
            config.version,
            config.params,
        )
        for config in configs
        for outcome in store.scores.outcomes(config.id, sample_id=drawn.id if drawn else None)
    )


def count(store: Store, configs: Sequence[Config], *, sample: str | None = None) -> int:
    """How many records there are."""
    if sample and (drawn := resolve_sample(store, sample)):
        return drawn.size * len(configs)
    return sum(store.scores.count_outcomes(config.id) for config in configs)
