"""Load evidence: the labels that count of a sample, or of several merged, beside a configuration's scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrate import registry
from calibrate.stats.labels.agreement import ENRICHED
from calibrate.types import Sample
from calibrate.workflow.detection.configurations import resolve_config
from calibrate.workflow.detection.detect import no_sample
from calibrate.workflow.evidence import merging
from calibrate.workflow.evidence.counted_labels import count_labels
from calibrate.workflow.evidence.evidence import Evidence
from db import Store
from db.scores import Config

EVEN = ("random", ENRICHED)  # designs whose labels, pooled, are no less like the traffic than before


def load_evidence(
    store: Store,
    name: str,
    *,
    sample: str | Sequence[str] | None = None,
    params: Mapping[str, Any] | None = None,
    config: Config | None = None,
) -> Evidence:
    """Load the labels and scores of a detector.

    `config` names one of its stored configurations, `params` the one with these parameters; without either it is the
    one with the parameters it ships with, or where those were never run the one that was run last. Raises BadInput for
    an unknown detector or sample, and for a detector that was never run, with what to do.
    """
    cls = registry.get(name)
    drawn = resolve_sample(store, sample)
    config = config or resolve_config(store, name, params)
    counted = count_labels(store, config, drawn)
    return Evidence(
        config,
        cls.flag_when,
        drawn,
        tuple(row for row in counted.rows if row.status != "refusal"),
        tuple(row for row in counted.rows if row.status == "refusal"),
        counted.undecided,
        counted.waiting,
    )


def resolve_sample(store: Store, name: str | Sequence[str] | None) -> Sample | None:
    """Return the sample of this name, or several merged; None stands for every label. Raises BadInput for an unknown
    name and for samples that cannot be merged.
    """
    names = [name] if isinstance(name, str) else list(dict.fromkeys(name or ()))
    samples = []
    for each in names:
        sample = store.samples.get(each)
        if sample is None:
            raise no_sample(store, each)
        samples.append(sample)
    return merging.merge_samples(samples) if len(samples) > 1 else next(iter(samples), None)


@dataclass(frozen=True)
class Uneven:
    """Labels that are taken as if drawn at random and were not: `chosen` of `total`, in samples of these designs."""

    chosen: int
    total: int
    designs: tuple[str, ...]


def uneven_labels(store: Store, sample: Sample | None) -> Uneven | None:
    """Count the labels that are taken as a random draw and are not one; None if there are none, and for a sample."""
    if sample is not None:
        return None
    chosen, designs = 0, set()
    for stored in store.samples.list():
        n = 0 if stored.design in EVEN else _definite(store.labels.gold_counts(stored.id))
        if n:
            chosen += n
            designs.add(stored.design)
    total = _definite(store.labels.gold_counts())
    return Uneven(min(chosen, total), total, tuple(sorted(designs))) if chosen else None


def _definite(counts: Mapping[str, int]) -> int:
    return counts.get("clean", 0) + counts.get("hallucinated", 0)
