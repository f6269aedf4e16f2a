"""The Tune page's choices: which labels, which detector, which policy, where the threshold stands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.errors import TouchstoneError
from calibrate.stats.policies import Policy
from calibrate.steps import tune as step
from calibrate.types import OperatingPoint, Sample
from db import Store
from db.scores import Config
from pages.parts.text import visible
from pages.parts.words import count

EVERYTHING = "All labelled traces"
POLICIES = {"precision": "Precision at least", "elbow": "Elbow", "manual": "By hand"}
TARGET = 70


@dataclass(frozen=True)
class Setting:
    """Where the threshold stands, kept for the session. `where` is the configuration and sample it was set for."""

    where: tuple[int, str | None]
    kind: str
    target: int
    threshold: float

    @property
    def policy(self) -> Policy:
        value = {"precision": self.target / 100, "manual": self.threshold}.get(self.kind)
        return Policy(self.kind, value)  # type: ignore[arg-type]


def labelled(store: Store, config: Config, sample: str | None) -> step.Labelled:
    return _kept(store.url, config.id, sample, step.revision(store, config), store, config)


@st.cache_resource(max_entries=100, show_spinner=False)
def _kept(
    url: str, config_id: int, sample: str | None, revision: tuple[Any, ...], _store: Store, _config: Config
) -> step.Labelled:
    """Immutable, so one serves every session, and its sweep is computed once."""
    return step.labelled(_store, _config.name, sample=sample, config=_config)


def choose_labels(store: Store) -> Sample | None:
    """The sample whose labels are meant, kept across pages and in the address; None for every label there is."""
    samples = {sample.name: sample for sample in store.samples.list()}
    names = [*samples, EVERYTHING]
    wanted = st.query_params.get("sample") or st.session_state.get("sample_at_hand")
    if wanted not in names:
        # The newest sample that has labels; a sample nobody has labelled yet teaches nothing.
        wanted = next((n for n, s in samples.items() if store.labels.gold_counts(s.id)), EVERYTHING)
    name = st.selectbox("Labels", names, index=names.index(wanted), format_func=lambda n: _labels_title(n, samples))
    st.query_params["sample"] = name
    if name in samples:
        st.session_state["sample_at_hand"] = name
    return samples.get(name)


def best_first(store: Store, runs: Mapping[str, Sequence[Config]], sample: str | None) -> dict[str, Sequence[Config]]:
    """The detectors by AUROC on these labels, the ones that cannot be judged last."""
    sweeps = {name: labelled(store, configs[-1], sample).sweep for name, configs in runs.items()}
    # What a detector adds over chance, on the traffic it can score: a perfect one that scores 1% is no place to begin.
    gain = {name: ((one.auroc or 0.5) - 0.5) * (one.coverage or 0.0) for name, one in sweeps.items()}
    return dict(sorted(runs.items(), key=lambda item: -gain[item[0]]))


def choose_config(runs: Mapping[str, Sequence[Config]], places: Sequence[Any]) -> Config:
    """The detector and, where it was run in several ways, which of them; the last one unless chosen.

    `runs` are in the order in which they are offered: the first is the default.
    """
    names = list(runs)
    wanted = st.query_params.get("detector") or st.session_state.get("detector_at_hand")
    index = names.index(wanted) if wanted in names else 0
    name = places[0].selectbox("Detector", names, index=index, format_func=title)
    st.session_state["detector_at_hand"] = st.query_params["detector"] = name
    configs = list(reversed(runs[name]))
    if len(configs) == 1:
        return configs[0]
    words = dict(zip((config.id for config in configs), told_apart(configs), strict=True))
    found = {config.id: config for config in configs}
    chosen = places[1].selectbox(
        "Run with", list(found), format_func=lambda key: visible(words[key], 120), key=f"tune_config_{name}"
    )
    return found[chosen]


def setting_for(data: step.Labelled) -> Setting:
    """The setting at hand, begun anew for another detector or sample: the default policy's choice."""
    where = (data.config.id, data.sample.name if data.sample else None)
    known: Setting | None = st.session_state.get("tune_setting")
    if known is None or known.where != where:
        kind = known.kind if known and known.kind != "manual" else "precision"
        target = known.target if known else TARGET
        known = _moved(data, Setting(where, kind, target, 0.0))
        st.session_state["tune_setting"] = known
    return known


def choose_policy(data: step.Labelled, setting: Setting) -> None:
    """The control that moves the threshold, and its number."""
    state = st.session_state
    state["tune_policy"], state["tune_target"], state["tune_exact"] = setting.kind, setting.target, setting.threshold
    with st.container(horizontal=True, vertical_alignment="top", key="tune-policy"):
        st.segmented_control(
            "Policy",
            list(POLICIES),
            required=True,
            format_func=POLICIES.__getitem__,
            key="tune_policy",
            on_change=_set_policy,
            args=(data,),
            help="Precision at least: most recall among the thresholds whose measured precision reaches the target. "
            "Elbow: the highest F1 on a smoothed curve. By hand: drag the slider, click a chart or type a threshold.",
        )
        if setting.kind == "precision":
            st.number_input(
                "Target, %", 1, 100, key="tune_target", on_change=_set_policy, args=(data,), step=5, width=130
            )
        elif setting.kind == "manual":
            step_ = step_of(data)
            st.number_input(
                "Threshold", key="tune_exact", on_change=_by_hand, args=("tune_exact",), step=step_, format="%.5g",
                width=160,
            )  # fmt: skip


def slide(data: step.Labelled, setting: Setting) -> None:
    low, high = span_of(data)
    st.session_state["tune_slider"] = min(max(setting.threshold, low), high)
    digits = max(0, -math.floor(math.log10(step_of(data))))
    with st.container(key="tune-slide"):
        st.slider(
            "Threshold",
            low,
            high,
            step=step_of(data),
            format=f"%.{digits}f",
            key="tune_slider",
            on_change=_by_hand,
            args=("tune_slider",),
            label_visibility="collapsed",
        )


def clicked(key: str) -> None:
    """A click on a chart: the point says which threshold it stands for. A click beside everything says nothing."""
    points = st.session_state[key]["selection"]["points"]
    if points and (given := points[0].get("customdata")) is not None:
        # The browser sends a list as it is, or as a mapping by place.
        _hand(float(next(iter(given.values() if isinstance(given, Mapping) else given))))


def take_by_hand(threshold: float) -> None:
    _hand(threshold)


def span_of(data: step.Labelled) -> tuple[float, float]:
    """The scores there are, with a little room on both sides, so that a threshold may flag nothing or everything."""
    thresholds = data.sweep.thresholds
    low, high = float(thresholds.min()), float(thresholds.max())
    room = 0.03 * (high - low) or max(abs(low) * 0.5, 0.5)
    return low - room, high + room


def step_of(data: step.Labelled) -> float:
    """A round step, 300 to 750 of them in the span: as fine as a drag can be, and still quick by arrow key."""
    low, high = span_of(data)
    most = (high - low) / 300
    power = 10.0 ** math.floor(math.log10(most))
    return float(max(nice for nice in (power, 2 * power, 5 * power) if nice <= most))


def title(name: str) -> str:
    """The detector as people know it, with the name that files and commands use."""
    return f"{registry.get(name).title} ({name})"


def at(point: OperatingPoint) -> str:
    return f"{'≥' if point.flag_when == 'above' else '≤'} {point.threshold:.4g}"


def _set_policy(data: step.Labelled) -> None:
    state = st.session_state
    known: Setting = state["tune_setting"]
    target = int(state.get("tune_target") or known.target)
    state["tune_setting"] = _moved(data, replace(known, kind=state["tune_policy"], target=target))


def _by_hand(key: str) -> None:
    if (value := st.session_state[key]) is not None:
        _hand(float(value))


def _hand(threshold: float) -> None:
    known: Setting = st.session_state["tune_setting"]
    st.session_state["tune_setting"] = replace(known, kind="manual", threshold=threshold)


def _moved(data: step.Labelled, setting: Setting) -> Setting:
    """The setting with the threshold where its policy puts it."""
    if setting.kind == "manual" or data.sweep.missing:
        return setting
    try:
        return replace(setting, threshold=step.point_of(data, setting.policy).threshold)
    except TouchstoneError:
        return setting


def _labels_title(name: str, samples: Mapping[str, Sample]) -> str:
    if name not in samples:
        return name
    sample = samples[name]
    return f"{visible(name, 60)} · {count(sample.size, 'trace')}, {sample.design}"


def told_apart(configs: Sequence[Config]) -> list[str]:
    """Each configuration by what differs among them: `variant plain`, `version 2`, `revision prompt-1f0c2d3e`."""
    parts = [c.revision.split("+") for c in configs]
    own = [" + ".join(part for part in mine if not all(part in others for others in parts)) for mine in parts]
    facts = [
        {"version": c.version, "revision": mine or "ours", **c.params} for c, mine in zip(configs, own, strict=True)
    ]
    keys = sorted({key for fact in facts for key in fact})
    differ = [key for key in keys if len({str(fact.get(key)) for fact in facts}) > 1]
    return [", ".join(f"{key} {fact.get(key, 'none')}" for key in differ) for fact in facts]
