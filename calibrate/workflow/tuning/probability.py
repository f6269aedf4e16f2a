"""Probability map: what a detector's score says in percent, and how far that may be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from calibrate.errors import BadInput
from calibrate.probability import JudgedMap, ProbabilityMap
from calibrate.stats.choosing.choose import NotEnoughLabels
from calibrate.stats.fitting.probability_maps import Fitted, fit_map
from calibrate.stats.fitting.reliability import Reliability
from calibrate.types import Interval
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import must_describe_traffic
from db import Store
from db.points import SavedPoint
from db.scores import Config


@dataclass(frozen=True)
class Mapped:
    """The map of one configuration, on the labels of a sample or all."""

    config: Config
    sample: str | None
    fitted: Fitted


def fit(store: Store, name: str, *, sample: str | None = None, config: Config | None = None, seed: int = 0) -> Mapped:
    """Fit a detector's map and judge it on traces it was not fitted on. The same seed, the same answer.

    Raises BadInput for an unknown detector or sample, and where labels are too few to fit a map or do not describe
    the traffic.
    """
    data = loading.load_evidence(store, name, sample=sample, config=config)
    must_describe_traffic(data.caution)
    try:
        fitted = fit_map(
            data.labels,
            data.scores,
            flag_when=data.flag_when,
            rng=np.random.default_rng(seed),
            design=data.design,
            groups=data.groups,
        )
    except NotEnoughLabels as error:
        raise NotEnoughLabels(f"{name}: {error}") from error
    return Mapped(data.config, sample, fitted)


def save(store: Store, mapped: Mapped, *, by: str, now: datetime) -> None:
    """Save the map with the detector's saved operating point, from which a release takes it: the point is saved again,
    together with the map. Raises BadInput where no point is saved, or one of another configuration."""
    name = mapped.config.name
    saved = store.points.latest().get(name)
    if saved is None or saved.config_id != mapped.config.id:
        raise BadInput(
            f"a probability map is kept with the operating point of {name}, and "
            + ("none is saved" if saved is None else "the saved one is of other parameters or another model")
            + f": save one first "
            f"(`choose {name} --save`, or the Tune page)"
        )
    data = replace(saved.data, probability_map=released(mapped.fitted).to_json())
    store.points.save(replace(saved, data=data, chosen_by=by, chosen_at=now))


def kept_map(saved: SavedPoint) -> ProbabilityMap | None:
    """The map that is kept with a saved point."""
    document = saved.data.probability_map
    return None if document is None else ProbabilityMap.from_json(document)


def released(fitted: Fitted) -> JudgedMap:
    """What a release says of a map: the map, and how it did on traces it was not fitted on."""
    reliability = fitted.reliability
    return JudgedMap(fitted.map, reliability.n, reliability.positives, reliability.brier, Interval(reliability.ece))


def judged(reliability: Reliability) -> Mapping[str, Any]:
    """The reliability as plain values."""
    return {
        "n": reliability.n,
        "positives": reliability.positives,
        "groups": reliability.clusters,
        "brier": asdict(reliability.brier),
        "brier_of_prevalence": reliability.base_brier,
        "gain": asdict(reliability.gain),
        "log_loss": reliability.log_loss,
        "ece": asdict(Interval(reliability.ece)),
        "ece_plain": reliability.ece,
        "bins": [asdict(row) for row in reliability.bins],
    }
