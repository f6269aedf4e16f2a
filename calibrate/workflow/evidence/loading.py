"""Load evidence: the labels that count of a sample, or of several merged, beside a configuration's scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrate import registry
from calibrate.workflow.detection.configurations import resolve_config
from calibrate.workflow.evidence.basis import Basis, choose_basis
from calibrate.workflow.evidence.counted_labels import count_labels
from calibrate.workflow.evidence.evidence import Evidence
from db import Store
from db.scores import Config


def load_evidence(
    store: Store,
    name: str,
    *,
    sample: str | Sequence[str] | None = None,
    basis: Basis | None = None,
    params: Mapping[str, Any] | None = None,
    config: Config | None = None,
) -> Evidence:
    """Load the labels and scores of a detector, of a sample, of several merged, or of what `choose_basis` takes.

    `basis` is in place of `sample`. `config` names one of the detector's stored configurations, `params` the one with
    these parameters; without either it is the one with the parameters it ships with, or where those were never run the
    one that was run last. Raises BadInput for an unknown detector or sample, and for a detector that was never run,
    with what to do.
    """
    cls = registry.get(name)
    basis = basis or choose_basis(store, sample)
    config = config or resolve_config(store, name, params)
    counted = count_labels(store, config, basis.sample)
    return Evidence(
        config,
        cls.flag_when,
        basis.sample,
        tuple(row for row in counted.rows if row.status != "refusal"),
        tuple(row for row in counted.rows if row.status == "refusal"),
        counted.undecided,
        counted.waiting,
        basis.caution,
        counted.fitted,
    )
