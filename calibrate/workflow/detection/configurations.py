"""Choose the configuration of a detector that a user means, and name what differs between several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrate import registry
from calibrate.detectors.shared.external import undefined
from calibrate.errors import BadInput
from calibrate.workflow.detection.detect import config_id
from calibrate.workspace import current
from db import Store
from db.scores import Config


def resolve_config(store: Store, name: str, params: Mapping[str, Any] | None = None) -> Config:
    """Return the configuration with these parameters; without parameters, `default_config`.

    Raises BadInput where the detector is unknown or was never run.
    """
    if params:
        return store.scores.get_config(config_id(store, registry.make(name, params)))
    registry.get(name)
    configs = store.scores.configs(name)
    if not configs:
        command = registry.how_to_score(name, "--labelled")
        raise BadInput(f"{name} has no scores yet: make them first (`{command}`, or the Detect page)")
    return default_config(configs)


def nothing_scored() -> BadInput:
    """That no detector has scores to go by, and the remedy: a direction, where some were imported without."""
    waiting = [name for name, external in sorted(current().external.items()) if external.flag_when is None]
    if waiting:
        return BadInput(undefined(waiting[0]))
    return BadInput("no detector has scores yet: run them first (`detect all --labelled`, or the Detect page)")


def configs_by_detector(store: Store) -> dict[str, list[Config]]:
    """List the configurations of every known detector that has scores: in the order they were used, the default
    configuration last.
    """
    configs_of = {name: store.scores.configs(name) for name in registry.names()}
    return {
        name: sorted(configs, key=lambda config: config == default_config(configs))
        for name, configs in configs_of.items()
        if configs
    }


def default_config(configs: Sequence[Config]) -> Config:
    """Of a detector's configurations, in the order they were used: the latest with the parameters it ships with, or
    where those were never run the one that was run last."""
    usual = registry.config_of(registry.make(configs[-1].name))
    return next((config for config in reversed(configs) if dict(config.params) == usual), configs[-1])


def distinguish_configs(configs: Sequence[Config]) -> list[str]:
    """Name each configuration by what differs among them: `variant plain`, `version 2`, `revision prompt-1f0c2d3e`."""
    parts = [c.revision.split("+") for c in configs]
    own = [" + ".join(part for part in mine if not all(part in others for others in parts)) for mine in parts]
    facts = [
        {"version": c.version, "revision": mine or "ours", **c.params} for c, mine in zip(configs, own, strict=True)
    ]
    keys = sorted({key for fact in facts for key in fact})
    differ = [key for key in keys if len({str(fact.get(key)) for fact in facts}) > 1]
    return [", ".join(f"{key} {fact.get(key, 'none')}" for key in differ) for fact in facts]
