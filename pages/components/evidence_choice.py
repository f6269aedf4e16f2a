"""The controls that choose whose labels, and which detector's scores on them, a page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from calibrate.types import Sample
from calibrate.workflow.certification import attempts
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import evidence, loading
from db import Store
from db.scores import Config
from pages import shell
from pages.components.text import visible

SampleNames = str | tuple[str, ...] | None


@shell.cached_read("Reading labels and scores …", *shell.EVIDENCE, entries=100)
def evidence_of(store: Store, config: Config, sample: SampleNames) -> evidence.Evidence:
    """The labels beside one configuration's scores; its sweep is computed once for all sessions."""
    return loading.load_evidence(store, config.name, sample=sample, config=config)


@shell.cached_read(None, "scores")
def configs_by_detector(store: Store) -> dict[str, list[Config]]:
    """Every detector that has scores, with its configurations, the most recently used last."""
    return configurations.configs_by_detector(store)


def sample_names(sample: Sample | None) -> SampleNames:
    """The names by which to load the labels of a sample; a merged one has the names of all its parts."""
    return attempts.first_names(sample) or None


def best_first(store: Store, runs: Mapping[str, Sequence[Config]], sample: SampleNames) -> dict[str, Sequence[Config]]:
    """The detectors, first that which adds most over chance on all traffic, those that cannot be judged last."""
    sweeps = {name: evidence_of(store, configs[-1], sample).sweep for name, configs in runs.items()}
    return dict(sorted(runs.items(), key=lambda item: -gain(sweeps[item[0]].auroc, sweeps[item[0]].coverage)))


def gain(auroc: float | None, coverage: float | None) -> float:
    """What a detector adds over chance on all traffic: a perfect one that scores 1% of it is no place to begin."""
    return ((auroc or 0.5) - 0.5) * (coverage or 0.0)


def detector_at_hand(runs: Mapping[str, Sequence[Config]]) -> str:
    """The detector in the address, else the one looked at last, else the first of `runs`; kept in the address."""
    requested = st.query_params.get("detector") or st.session_state.get("detector_at_hand")
    name = str(requested if requested in runs else next(iter(runs)))
    st.session_state["detector_at_hand"] = name
    _remember("detector", name)
    return name


def choose_config(configs: Sequence[Config]) -> Config:
    """Which of a detector's configurations to show, kept in the address; the last one by default."""
    configs = list(reversed(configs))
    if len(configs) == 1:
        st.query_params.pop("run_with", None)
        return configs[0]
    words = dict(zip((config.id for config in configs), configurations.distinguish_configs(configs), strict=True))
    by_id = {config.id: config for config in configs}
    ids = [str(key) for key in by_id]
    run_with = st.query_params.get("run_with")
    chosen = st.selectbox(
        "Run with",
        list(by_id),
        index=ids.index(run_with) if run_with in ids else 0,
        format_func=lambda key: visible(words[key], 120),
        key=f"tune_config_{configs[0].name}",
    )
    _remember("run_with", str(chosen))
    return by_id[chosen]


def _remember(key: str, value: str) -> None:
    """Keep whose scores are shown in the address. Drop a threshold there that was set for another detector: it is in
    the units of that one.
    """
    if st.query_params.get(key) != value:
        st.query_params.pop("threshold", None)
        st.query_params[key] = value
