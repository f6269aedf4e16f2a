"""What each threshold of a release flags on a labelled sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.stats.ensembles import rules
from calibrate.stats.sweep.sweep import Sweep, sweep
from calibrate.thresholds.ensembles import EnsembleEntry
from calibrate.thresholds.model import DetectorEntry, ThresholdsFile
from calibrate.types import Tier
from calibrate.workflow.evidence.basis import Basis
from calibrate.workflow.evidence.evidence import Evidence, design_of
from calibrate.workflow.evidence.loading import load_evidence
from calibrate.workflow.evidence.traffic import NOT_RUN
from calibrate.workflow.releasing.by_segment import as_released
from calibrate.workflow.releasing.entries import tiers_of
from db import Store
from db.scores import Config

TOLERANCE = 1e-12
"""By how much an ensemble's score may miss its cut: two machines' arithmetic differs in the last digits."""


@dataclass(frozen=True)
class Tested:
    """One threshold of the release on the labels of the sample.

    `cut` is its place on the sweep. `version` and `revision` are those of the detector whose scores were taken, with
    `same` where they are the released ones; an ensemble has none of its own.
    """

    name: str
    entry: DetectorEntry | EnsembleEntry
    tier: Tier
    sweep: Sweep
    cut: float
    evidence: Evidence
    version: str = ""
    revision: str = ""
    same: bool = True


def live_names(file: ThresholdsFile) -> list[str]:
    """The detectors and ensembles that can flag, detectors first."""
    detectors = [name for name, entry in sorted(file.detectors.items()) if entry.tier != "off"]
    return detectors + [name for name, _ in file.live_ensembles]


def load_tested(store: Store, file: ThresholdsFile, names: list[str], basis: Basis) -> list[Tested]:
    """Load the scores of these detectors and ensembles of a release.

    Of a detector they are those of the configuration that was run last on the sample with the released parameters: a
    changed detector is tested with what it says now. Raises BadInput where one was not run on nearly all of it.
    """
    needed = {member for name in names if name in file.ensembles for member in file.ensembles[name].members}
    needed |= {name for name in names if name in file.detectors}
    data = {name: _load(store, name, file.detectors[name], basis) for name in sorted(needed)}
    tiers = tiers_of(file)
    return [
        _test_ensemble(name, file.ensembles[name], tiers[name], data)
        if name in file.ensembles
        else _test_detector(store, name, file.detectors[name], data[name])
        for name in names
    ]


def _load(store: Store, name: str, entry: DetectorEntry, basis: Basis) -> Evidence:
    configs = [config for config in store.scores.configs(name) if dict(config.params) == dict(entry.params)]
    for config in reversed(configs):
        data = load_evidence(store, name, basis=basis, config=config)
        if data.not_run <= NOT_RUN * len(data.rows):
            return data
    scope = f"--sample {basis.sample.names[0]}" if basis.sample else "--labelled"
    params = "".join(f" --param {key}={value}" for key, value in entry.params.items())
    raise BadInput(
        f"{name} has no scores of these labels with the parameters of the release: make them first "
        f"(`{registry.how_to_score(name, scope + params)}`)"
    )


def _test_detector(store: Store, name: str, entry: DetectorEntry, data: Evidence) -> Tested:
    data, cut = as_released(store, entry, data)
    points = sweep(data.labels, data.scores, design=data.design, groups=data.groups, flag_when=entry.flag_when)
    config: Config = data.config
    same = (config.version, config.revision) == (entry.version, entry.revision)
    return Tested(name, entry, entry.tier, points, cut, data, config.version, config.revision, same)


def _test_ensemble(name: str, entry: EnsembleEntry, tier: Tier, data: Mapping[str, Evidence]) -> Tested:
    """The rule's scores of the rows that no member calls a refusal; none where no member has a score."""
    members = [data[member] for member in entry.members]
    first, refused = members[0], {row.pk for each in members for row in each.refused}
    rows = tuple(row for row in first.rows if row.pk not in refused)
    left_out = tuple(row for row in (*first.rows, *first.refused) if row.pk in refused)
    scores = {}
    for member in entry.members:
        by_trace = {row.pk: row.value for row in data[member].rows}
        values = [by_trace.get(row.pk) for row in rows]
        scores[member] = np.array([np.nan if value is None else value for value in values], dtype=float)
    combined = rules.from_json(entry.rule).score(scores)
    unscored = np.all([np.isnan(each) for each in scores.values()], axis=0)
    drawn = None if first.caution else first.sample
    points = sweep(
        np.array([row.gold == "hallucinated" for row in rows], dtype=bool),
        np.where(unscored, np.nan, combined),
        design=design_of(drawn, rows, (*left_out, *first.undecided)),
        groups=[row.group for row in rows],
        flag_when="above",
    )
    cut = entry.cuts.signal if entry.cuts.signal is not None else entry.cuts.page
    assert cut is not None
    return Tested(name, entry, tier, points, cut - TOLERANCE, first)
