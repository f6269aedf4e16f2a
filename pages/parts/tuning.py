"""The Tune page's choices: which labels, which detector, which policy, where the threshold stands."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import streamlit as st

from calibrate import registry
from calibrate.errors import BadInput, TouchstoneError
from calibrate.sampling import speaks_for_all
from calibrate.stats.chance import chance_below
from calibrate.stats.policies import Policy, Pool
from calibrate.stats.policy_text import Kind, parse
from calibrate.steps import attempts, certify
from calibrate.steps import tune as step
from calibrate.types import OperatingPoint, Sample, Strength
from db import Store
from db.scores import Config
from pages.parts.text import plain, visible
from pages.parts.words import count

T = TypeVar("T")
EVERYTHING = "All labelled traces"
TOGETHER = "All samples together"
IGNORED = "tune_ignored"
Asked = str | tuple[str, ...] | None
POLICIES: dict[Kind, str] = {
    "precision": "Precision at least",
    "recall": "Recall at least",
    "f-beta": "F-beta",
    "cost": "Cost",
    "alerts": "Flags a day",
    "elbow": "Elbow",
    "manual": "By hand",
}
ABOUT = """
- *Precision at least*: most recall among the thresholds whose precision reaches the target.
- *Recall at least*: most precision among those whose recall reaches it, end to end.
- *F-beta*: the highest F-beta; a beta of 2 counts recall twice as much as precision.
- *Cost*: the cheapest, given what a false alarm and a miss cost.
- *Flags a day*: most recall among those that flag no more of the traffic.
- *Elbow*: the highest F1 on a smoothed curve.
- *By hand*: drag the slider, click a chart or type a threshold.
"""
STRENGTHS: dict[Strength, str] = {"measured": "Measured", "bounded": "Bounded", "certified": "Certified"}
ABOUT_STRENGTH = """
- *Measured*: the target is met on these labels. They chose the threshold too, so on new traffic about half of such
  thresholds fall short.
- *Bounded*: a lower bound on these labels meets it. Approximate.
- *Certified*: an exact test on fresh labels, drawn for it, meets it.
"""
FIRST = {"precision": Policy("precision", 0.7), "recall": Policy("recall", 0.9), "f-beta": Policy("f-beta", 1.0),
         "cost": Policy("cost", 1.0, 20.0), "alerts": Policy("alerts", 20.0), "elbow": Policy("elbow")}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """Where the threshold stands, kept for the session. `where` is the configuration and sample it was set for; `rule`
    the last policy but `manual`, which keeps its numbers while the threshold is moved by hand. `said`: the threshold
    was typed or taken from a sentence, not dragged; only such a one goes to the address, as every change of that is one
    more press of the browser's Back."""

    where: tuple[int, str | None]
    rule: Policy
    strength: Strength
    by_hand: bool
    threshold: float
    said: bool = False

    @property
    def policy(self) -> Policy:
        return Policy("manual", self.threshold) if self.by_hand else self.rule

    @property
    def asked(self) -> Strength:
        """Only a precision can be more than measured."""
        return self.strength if self.policy.kind == "precision" else "measured"


def labelled(store: Store, config: Config, sample: Asked) -> step.Labelled:
    return _kept(store.url, config.id, sample, step.revision(store, config), store, config)


@st.cache_resource(max_entries=100, show_spinner="Reading labels and scores …")
def _kept(
    url: str, config_id: int, sample: Asked, revision: tuple[Any, ...], _store: Store, _config: Config
) -> step.Labelled:
    """Immutable, so one serves every session, and its sweep is computed once."""
    return step.labelled(_store, _config.name, sample=sample, config=_config)


def choose_labels(store: Store, *, merge: bool = False) -> Sample | None:
    """The sample whose labels are meant, kept across pages and in the address; None for every label there is. With
    `merge` all samples can be taken as one, each weighted by its own design."""
    samples = {sample.name: sample for sample in store.samples.list() if speaks_for_all(sample)}
    labelled = [name for name, sample in samples.items() if store.labels.gold_counts(sample.id)] if merge else []
    names = [*samples, *([TOGETHER] if len(labelled) > 1 else []), EVERYTHING]
    wanted = st.query_params.get("sample") or st.session_state.get("sample_at_hand")
    if wanted not in names:
        # The newest sample that has labels; a sample nobody has labelled yet teaches nothing.
        wanted = next((n for n, s in samples.items() if store.labels.gold_counts(s.id)), EVERYTHING)
    name = st.selectbox("Labels", names, index=names.index(wanted), format_func=lambda n: _labels_title(n, samples))
    st.query_params["sample"] = name
    if name in samples:
        st.session_state["sample_at_hand"] = name
    return step.sample_of(store, labelled) if name == TOGETHER else samples.get(name)


def asked(sample: Sample | None) -> Asked:
    """What to ask the labels of a sample by; several that stand as one are asked by all their names."""
    return attempts.first_names(sample) or None


def best_first(store: Store, runs: Mapping[str, Sequence[Config]], sample: Asked) -> dict[str, Sequence[Config]]:
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
    st.session_state["detector_at_hand"] = name
    _keep("detector", name)
    configs = list(reversed(runs[name]))
    if len(configs) == 1:
        st.query_params.pop("run_with", None)
        return configs[0]
    words = dict(zip((config.id for config in configs), step.told_apart(configs), strict=True))
    found = {config.id: config for config in configs}
    ids = [str(key) for key in found]
    asked = st.query_params.get("run_with")
    chosen = places[1].selectbox(
        "Run with",
        list(found),
        index=ids.index(asked) if asked in ids else 0,
        format_func=lambda key: visible(words[key], 120),
        key=f"tune_config_{name}",
    )
    _keep("run_with", str(chosen))
    return found[chosen]


def _keep(key: str, value: str) -> None:
    """Keeps whose scores are shown in the address. A threshold there that was set for others is in their units: it
    goes."""
    if st.query_params.get(key) != value:
        st.query_params.pop("threshold", None)
        st.query_params[key] = value


def setting_for(store: Store, data: step.Labelled) -> Setting:
    """The setting at hand, begun anew for another detector or sample: the default policy's choice."""
    where = (data.config.id, data.sample.name if data.sample else None)
    known: Setting | None = st.session_state.get("tune_setting")
    if known is None or known.where != where:
        begun = Setting(where, known.rule, known.strength, False, 0.0) if known else _addressed(where, span_of(data))
        known = _moved(store, data, begun)
        st.session_state["tune_setting"] = known
    return known


def _addressed(where: tuple[int, str | None], span: tuple[float, float]) -> Setting:
    """What the address asks for, as it was before a reload; else what one begins with."""
    strength = next((one for one in STRENGTHS if one == st.query_params.get("strength")), "measured")
    try:
        rule = parse(st.query_params.get("policy") or "")
    except BadInput:
        rule = FIRST["precision"]
    rule = FIRST["precision"] if rule.kind == "manual" else rule
    text = st.query_params.get("threshold")
    by_hand = None if text is None else threshold_in(text, span)
    if text is not None and by_hand is None:
        st.session_state[IGNORED] = f"The address asks for the threshold {text[:40]!r}"
    return Setting(where, rule, strength, by_hand is not None, by_hand or 0.0, said=by_hand is not None)


def threshold_in(text: str, span: tuple[float, float]) -> float | None:
    """The threshold that an address holds; None for what is no number within the span of the scores."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if span[0] <= value <= span[1] else None  # nan is within nothing


def tell_ignored(data: step.Labelled) -> None:
    """Says so where the threshold in the address could not be taken."""
    if asked := st.session_state.pop(IGNORED, None):
        low, high = span_of(data)
        said = f"{asked}, which is no number from {low:.4g} to {high:.4g}: shown is what the policy chooses."
        st.info(plain(said), icon=":material/link_off:")


def address(setting: Setting) -> None:
    """Keeps the policy in the address, and a threshold that was said."""
    said = setting.by_hand and setting.said
    kept = {"policy": str(setting.rule), "strength": setting.strength}
    kept |= {"threshold": repr(setting.threshold)} if said else {}
    if any(st.query_params.get(key) != value for key, value in kept.items()):
        st.query_params.update(kept)
    if not said:
        st.query_params.pop("threshold", None)


def point_of(store: Store, data: step.Labelled, setting: Setting) -> OperatingPoint:
    """The point that the setting chooses; where it is to be certified, the certified one, or until there is one what
    the labels at hand make of it."""
    if setting.asked == "certified":
        at = attempts.certified(store, data.config.name, data.config.id, setting.rule.number)
        if at:
            return certify.point_of(store, at.certification)
    if setting.by_hand:
        return step.point_of(data, setting.policy)
    strength: Strength = "bounded" if setting.asked == "bounded" else "measured"
    return once(data, ("point", setting.policy, strength), lambda: _chosen(store, data, setting.policy, strength))


def _chosen(store: Store, data: step.Labelled, policy: Policy, strength: Strength) -> OperatingPoint:
    pool = traffic(store, data) if policy.kind == "alerts" else None
    return step.point_of(data, policy, strength=strength, pool=pool)


def once(data: step.Labelled, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives, kept for the session while it is about these labels: a threshold that moves asks again, and a
    million labels are not gone through for it."""
    kept = st.session_state.get("tune_kept")
    if kept is None or kept[0] is not data:
        kept = st.session_state["tune_kept"] = (data, {})
    found: dict[Hashable, T] = kept[1]
    if key not in found:
        found[key] = make()
    return found[key]


def flags_a_day(store: Store, data: step.Labelled, setting: Setting, point: OperatingPoint) -> float | None:
    """As counted in the traffic, where the policy is about that."""
    if setting.policy.kind != "alerts":
        return None
    return traffic(store, data).flags_a_day(point.threshold, point.flag_when)


def chance(data: step.Labelled, setting: Setting, point: OperatingPoint) -> float | None:
    """The chance that a measured precision, chosen on labels like these, is short of its target; None where more than
    measured is known."""
    if setting.asked == "bounded" or point.guarantee:
        return None
    policy = setting.policy
    return once(data, ("chance", policy), lambda: chance_below(data.sweep, policy, rng=np.random.default_rng(0)))


def traffic(store: Store, data: step.Labelled) -> Pool:
    sample = data.sample.name if data.sample else None
    return _traffic(store.url, data.config.id, sample, step.revision(store, data.config), store, data)


@st.cache_resource(max_entries=20, show_spinner="Reading the traffic's scores …")
def _traffic(
    url: str, config_id: int, sample: str | None, revision: tuple[Any, ...], _store: Store, _data: step.Labelled
) -> Pool:
    return step.traffic(_store, _data)


def choose_policy(store: Store, data: step.Labelled, setting: Setting) -> None:
    """The controls that move the threshold, and their numbers."""
    state, moved = st.session_state, {"on_change": _set_policy, "args": (store, data)}
    state["tune_policy"], state["tune_strength"] = setting.policy.kind, setting.strength
    with st.container(horizontal=True, vertical_alignment="top", key="tune-policy"):
        st.segmented_control(
            "Policy",
            list(POLICIES),
            required=True,
            format_func=POLICIES.__getitem__,
            key="tune_policy",
            help=ABOUT,
            **moved,
        )
        for number in NUMBERS.get(setting.policy.kind, ()):
            state[number.key] = number.shown(setting.rule)
            st.number_input(
                number.title,
                number.low,
                number.high,
                value=None,
                key=number.key,
                step=number.step,
                format="%g",
                width=130,
                **moved,
            )
        if setting.policy.kind == "precision":
            st.segmented_control(
                "How sure",
                list(STRENGTHS),
                required=True,
                format_func=STRENGTHS.__getitem__,
                key="tune_strength",
                help=ABOUT_STRENGTH,
                **moved,
            )


@dataclass(frozen=True)
class Number:
    """One number of a policy as it is typed: a `part` of it, times `scale`."""

    key: str
    title: str
    part: Literal["value", "miss"] = "value"
    scale: float = 1.0
    low: float = 0.01
    high: float = 1e9
    step: float = 1.0

    def shown(self, policy: Policy) -> float:
        return round(float(getattr(policy, self.part)) * self.scale, 6)


NUMBERS: dict[Kind, tuple[Number, ...]] = {
    "precision": (Number("tune_precision", "Target, %", scale=100.0, low=1.0, high=100.0, step=5.0),),
    "recall": (Number("tune_recall", "Target, %", scale=100.0, low=1.0, high=100.0, step=5.0),),
    "f-beta": (Number("tune_beta", "Beta", low=0.1, high=10.0, step=0.5),),
    "cost": (Number("tune_alarm", "Of a false alarm"), Number("tune_miss", "Of a miss", "miss")),
    "alerts": (Number("tune_alerts", "At most", step=5.0),),
}


def type_in(data: step.Labelled, setting: Setting) -> None:
    st.session_state["tune_exact"] = setting.threshold
    st.number_input(
        "Threshold", key="tune_exact", on_change=_by_hand, args=("tune_exact",), step=step_of(data), format="%.5g",
        width=160, label_visibility="collapsed", value=None,
    )  # fmt: skip


def slide(data: step.Labelled, setting: Setting) -> None:
    low, high = span_of(data)
    st.session_state["tune_slider"] = min(max(setting.threshold, low), high)
    digits = max(0, -math.floor(math.log10(step_of(data))))
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
    """A click on a chart: the point says which threshold it stands for."""
    state = st.session_state
    points, where = state[key]["selection"]["points"], state["tune_setting"].where
    if points and (given := points[0].get("customdata")) is not None:
        # The browser sends a list as it is, or as a mapping by place.
        state["tune_clicked"] = (key, where, float(next(iter(given.values() if isinstance(given, Mapping) else given))))
    # A second click on the same point takes the selection back, and means the same threshold.
    if (last := state.get("tune_clicked")) and last[:2] == (key, where):
        _hand(last[2])


def take_by_hand(threshold: float) -> None:
    _hand(threshold, said=True)


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


def _set_policy(store: Store, data: step.Labelled) -> None:
    state = st.session_state
    known: Setting = state["tune_setting"]
    kind: Kind = state["tune_policy"]
    strength: Strength = state.get("tune_strength") or known.strength
    if kind == "manual":
        state["tune_setting"] = replace(known, by_hand=True)
        return
    rule = known.rule if known.rule.kind == kind else FIRST[kind]
    given = {one.part: state[one.key] / one.scale for one in NUMBERS.get(kind, ()) if state.get(one.key) is not None}
    if rule is known.rule:  # the numbers on the page are this policy's
        rule = replace(rule, **given)
    state["tune_setting"] = _moved(store, data, replace(known, rule=rule, strength=strength, by_hand=False))


def _by_hand(key: str) -> None:
    if (value := st.session_state[key]) is not None:
        _hand(float(value), said=key == "tune_exact")


def _hand(threshold: float, *, said: bool = False) -> None:
    known: Setting = st.session_state["tune_setting"]
    st.session_state["tune_setting"] = replace(known, by_hand=True, threshold=threshold, said=said)


def _moved(store: Store, data: step.Labelled, setting: Setting) -> Setting:
    """The setting with the threshold where its policy puts it."""
    if setting.by_hand or data.sweep.missing:
        return setting
    try:
        return replace(setting, threshold=point_of(store, data, setting).threshold)
    except TouchstoneError:
        return setting


def _labels_title(name: str, samples: Mapping[str, Sample]) -> str:
    if name not in samples:
        return name
    sample = samples[name]
    return f"{visible(name, 60)} · {count(sample.size, 'trace')}, {sample.design}"
