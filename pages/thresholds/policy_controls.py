"""The controls that choose a policy, and what sets a threshold by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import streamlit as st

from calibrate.stats.choosing.policy import Kind, Policy
from calibrate.types import Strength
from calibrate.workflow.evidence import evidence
from db import Store
from pages.components.threshold_chart.arrays import STRENGTHS
from pages.thresholds import tune_setting

Part = Literal["value", "miss"]
POLICIES: dict[Kind, str] = {
    "precision": "Precision at least",
    "recall": "Recall at least",
    "f-beta": "F-beta",
    "cost": "Cost",
    "alerts": "Flags a day",
    "elbow": "Elbow",
    "manual": "By hand",
}
USUAL: tuple[Kind, ...] = ("precision", "alerts", "recall")
ABOUT = """
- *Precision at least*: most recall among the thresholds whose precision reaches the target.
- *Recall at least*: most precision among those whose recall reaches it, end to end.
- *F-beta*: the highest F-beta; a beta of 2 counts recall twice as much as precision.
- *Cost*: the cheapest, given what a false alarm and a miss cost.
- *Flags a day*: the loosest of the traffic's scores that flags no more of it.
- *Elbow*: the highest F1 on a smoothed curve.
- *By hand*: drag the handle on the chart, move it with the arrow keys, or type a threshold.
"""
ABOUT_STRENGTH = """
- *Measured*: the target is met on these labels. They chose the threshold too, so on new traffic about half of such
  thresholds fall short.
- *Bounded*: a lower bound on these labels meets it. Approximate.
- *Certified*: an exact test, on labels drawn for it, meets it.
"""
ABOUT_LOOKS = (
    "The 5% of a bound is that of one detector looked at once. Say among how many detectors and looks at growing "
    "labels you choose, and they share it."
)


def choose_policy(store: Store, data: evidence.Evidence, setting: tune_setting.Setting) -> None:
    """The policy with its numbers: three of them in sight, the others under More."""
    state, kind = st.session_state, setting.policy.kind
    state["tune_policy"] = kind
    with st.container(horizontal=True, vertical_alignment="center", key="tune-policy", gap="small"):
        st.segmented_control(
            "Policy",
            [*USUAL, *([kind] if kind not in USUAL else [])],
            required=True,
            format_func=POLICIES.__getitem__,
            key="tune_policy",
            label_visibility="collapsed",
            on_change=_set_policy,
            args=(store, data),
        )
        for number in NUMBERS.get(kind, ()):
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
                label_visibility="visible" if len(NUMBERS[kind]) > 1 else "collapsed",
                on_change=_set_policy,
                args=(store, data),
            )
        # Another key for another policy: what was chosen closes it.
        with st.popover("More", key=f"tune-more-{kind}"):
            _more(store, data, setting)


def _more(store: Store, data: evidence.Evidence, setting: tune_setting.Setting) -> None:
    """The policies that are not in sight, and how sure a policy's choice of a precision is to be."""
    kind = setting.policy.kind
    with st.container(horizontal=True, gap="small"):
        for other in POLICIES:
            if other not in (*USUAL, kind):
                st.button(
                    POLICIES[other], key=f"tune-take-{other}", on_click=_take_kind, args=(store, data, other),
                )  # fmt: skip
    st.caption(ABOUT)
    if kind != "precision":
        return
    st.session_state["tune_strength"] = setting.strength
    st.segmented_control(
        "Choose it as",
        list(STRENGTHS),
        required=True,
        format_func=STRENGTHS.__getitem__,
        key="tune_strength",
        on_change=_set_policy,
        args=(store, data),
    )
    st.caption(ABOUT_STRENGTH)
    if setting.strength_in_force == "bounded":
        st.session_state["tune_looks"] = setting.looks
        st.number_input(
            "Looks", 1, tune_setting.MOST_LOOKS, value=None, key="tune_looks", step=1, width=130,
            on_change=_set_policy, args=(store, data), help=ABOUT_LOOKS,
        )  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A number of a policy as it is typed: its part of the policy, times `scale`."""

    key: str
    title: str
    part: Part = "value"
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


def clicked(key: str) -> None:
    """Take the threshold that the clicked point of a chart stands for."""
    state = st.session_state
    points, where = state[key]["selection"]["points"], state["tune_setting"].where
    if points and (custom := points[0].get("customdata")) is not None:
        # The browser sends a list as it is, or as a mapping by place.
        state["tune_clicked"] = (
            key,
            where,
            float(next(iter(custom.values() if isinstance(custom, Mapping) else custom))),
        )
    # A second click on the same point takes the selection back, and means the same threshold.
    if (last := state.get("tune_clicked")) and last[:2] == (key, where):
        take_by_hand(last[2])


def take_by_hand(threshold: float) -> None:
    """Set the threshold by hand."""
    setting: tune_setting.Setting = st.session_state["tune_setting"]
    st.session_state["tune_setting"] = replace(setting, by_hand=True, threshold=threshold)


def take_rule(store: Store, data: evidence.Evidence, rule: Policy | None, strength: Strength) -> None:
    """Let this rule (None: the one there is) choose the threshold, with this strength."""
    setting: tune_setting.Setting = st.session_state["tune_setting"]
    setting = replace(setting, rule=rule or setting.rule, strength=strength, by_hand=False)
    st.session_state["tune_setting"] = tune_setting.moved(store, data, setting)


def changed(
    setting: tune_setting.Setting, kind: Kind, strength: Strength, numbers: Mapping[Part, float]
) -> tune_setting.Setting:
    """The setting that the controls ask for. `numbers` stand on the page and belong to the policy before."""
    if kind == "manual":
        return replace(setting, by_hand=True)
    rule = tune_setting.FIRST[kind]
    if setting.rule.kind == kind:
        rule = setting.rule
        rule = replace(rule, value=numbers.get("value", rule.value), miss=numbers.get("miss", rule.miss))
    return replace(setting, rule=rule, strength=strength, by_hand=False)


def _take_kind(store: Store, data: evidence.Evidence, kind: Kind) -> None:
    st.session_state["tune_policy"] = kind
    _set_policy(store, data)


def _set_policy(store: Store, data: evidence.Evidence) -> None:
    state = st.session_state
    setting: tune_setting.Setting = state["tune_setting"]
    kind: Kind = state["tune_policy"]
    numbers = {
        number.part: state[number.key] / number.scale
        for number in NUMBERS.get(kind, ())
        if state.get(number.key) is not None
    }
    setting = changed(setting, kind, state.get("tune_strength") or setting.strength, numbers)
    setting = replace(setting, looks=state.get("tune_looks") or setting.looks)
    state["tune_setting"] = tune_setting.moved(store, data, setting)
