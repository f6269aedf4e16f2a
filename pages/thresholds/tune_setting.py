"""Where the threshold stands: by which policy, how sure, or by hand; and the point that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import streamlit as st

from calibrate.errors import BadInput, TouchstoneError
from calibrate.report.numbers import limit, number
from calibrate.stats.choosing.chance_below_target import chance_below
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.stats.choosing.pool import Pool
from calibrate.types import OperatingPoint, PointState, Strength
from calibrate.workflow.certification import attempts, certify
from calibrate.workflow.evidence import evidence
from calibrate.workflow.evidence.traffic import counted_traffic as read_traffic
from calibrate.workflow.evidence.traffic import scored_traffic
from calibrate.workflow.evidence.traffic import traffic_per_day as read_traffic_per_day
from calibrate.workflow.releasing import known_bad
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.tuning.better_steps import BetterStep, find_better_steps
from calibrate.workflow.tuning.point_state import goal_of
from db import Store
from db.scores import Config
from pages import shell
from pages.components.evidence_choice import SampleNames, configs_by_detector, evidence_of, sample_names
from pages.components.text import plain
from pages.components.threshold_chart.arrays import STRENGTHS

T = TypeVar("T")
IGNORED = "tune_ignored"
MOST_LOOKS = 1000
FIRST = {"precision": Policy("precision", 0.7), "recall": Policy("recall", 0.9), "f-beta": Policy("f-beta", 1.0),
         "cost": Policy("cost", 1.0, 20.0), "alerts": Policy("alerts", 20.0), "elbow": Policy("elbow")}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """Where the threshold stands, kept for the session.

    `where` is the configuration and sample it was set for. `rule` is the last policy but `manual`: it keeps its numbers
    while the threshold is moved by hand. `looks`: how many detectors and looks share a bound's error.
    """

    where: tuple[int, SampleNames]
    rule: Policy
    strength: Strength
    by_hand: bool
    threshold: float
    looks: int = 1

    @property
    def policy(self) -> Policy:
        return Policy("manual", self.threshold) if self.by_hand else self.rule

    @property
    def moved_from(self) -> str | None:
        """What was asked for last, of a threshold that was then moved by hand."""
        return str(self.rule) if self.by_hand else None

    @property
    def strength_in_force(self) -> Strength:
        """Only a precision can be more than measured."""
        return self.strength if self.policy.kind == "precision" else "measured"


def setting_for(store: Store, data: evidence.Evidence) -> Setting:
    """The setting at hand; for another detector or sample a new one, with the default policy's choice."""
    where = (data.config.id, data.sample.names if data.sample else None)
    setting: Setting | None = st.session_state.get("tune_setting")
    if setting is None or setting.where != where:
        begun = (
            Setting(where, setting.rule, setting.strength, False, 0.0, looks=setting.looks)
            if setting
            else _addressed(where, span_of(data))
        )
        setting = moved(store, data, begun)
        st.session_state["tune_setting"] = setting
    return setting


def _addressed(where: tuple[int, SampleNames], span: tuple[float, float]) -> Setting:
    """What the address asks for, as before a reload; else the default."""
    strength: Strength = next(
        (strength for strength in STRENGTHS if strength == st.query_params.get("strength")), "measured"
    )
    try:
        rule = parse(st.query_params.get("policy") or "")
    except BadInput:
        rule = FIRST["precision"]
    rule = FIRST["precision"] if rule.kind == "manual" else rule
    text = st.query_params.get("threshold")
    by_hand = None if text is None else threshold_in(text, span)
    if text is not None and by_hand is None:
        st.session_state[IGNORED] = f"The address asks for the threshold {text[:40]!r}"
    looks = looks_in(st.query_params.get("looks"))
    return Setting(where, rule, strength, by_hand is not None, by_hand or 0.0, looks=looks)


def moved(store: Store, data: evidence.Evidence, setting: Setting) -> Setting:
    """The setting with the threshold that its policy chooses."""
    if setting.by_hand or data.sweep.missing:
        return setting
    try:
        return replace(setting, threshold=point_of(store, data, setting).threshold)
    except TouchstoneError:
        return setting


def threshold_in(text: str, span: tuple[float, float]) -> float | None:
    """The threshold in an address; None if it is not a number within the span of the scores."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if span[0] <= value <= span[1] else None  # nan is within nothing


def looks_in(text: str | None) -> int:
    """The looks in an address; 1 where it names no number of them."""
    return (
        int(text)
        if text and text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MOST_LOOKS
        else 1
    )


def tell_ignored(data: evidence.Evidence) -> None:
    """Say so if the threshold in the address could not be used."""
    if reason := st.session_state.pop(IGNORED, None):
        low, high = span_of(data)
        sentence = (
            f"{reason}, which is no number from {number(low)} to {number(high)}: shown is what the policy chooses."
        )
        st.info(plain(sentence), icon=":material/link_off:")


def address(setting: Setting) -> None:
    """Keep the policy in the address, the looks of a bound, and a threshold set by hand.

    The chart has written the threshold there already, in the digits of a browser, without one more press of Back.
    """
    values = {"policy": str(setting.rule), "strength": setting.strength}
    values |= {"threshold": repr(setting.threshold)} if setting.by_hand else {}
    values |= {"looks": str(setting.looks)} if setting.looks > 1 else {}
    if any(not _says(key, value) for key, value in values.items()):
        st.query_params.update(values)
    for key in {"threshold", "looks"} - set(values):
        st.query_params.pop(key, None)


def _says(key: str, value: str) -> bool:
    """Whether the address says this already; of a threshold, whether it is the same number."""
    written = st.query_params.get(key)
    if key != "threshold" or written is None:
        return bool(written == value)
    try:
        return float(written) == float(value)
    except ValueError:
        return False


def point_of(store: Store, data: evidence.Evidence, setting: Setting) -> OperatingPoint:
    """The point that the setting chooses.

    If it is to be certified: the certified point, or until there is one, the point that the labels at hand give.
    """
    if setting.strength_in_force == "certified":
        status = attempts.certified(store, data.config.name, data.config.id, setting.rule.number)
        if status:
            return certify.point_of(store, status.attempt)
    if setting.by_hand:
        return operating_points.choose_point(data, setting.policy, pool=counted_traffic(store, data))
    strength: Strength = "bounded" if setting.strength_in_force == "bounded" else "measured"
    looks = setting.looks
    return once(data, ("point", setting.policy, strength, looks), lambda: _chosen(store, data, setting, strength))


def _chosen(store: Store, data: evidence.Evidence, setting: Setting, strength: Strength) -> OperatingPoint:
    pool = (traffic if setting.policy.kind == "alerts" else counted_traffic)(store, data)
    return operating_points.choose_point(data, setting.policy, strength=strength, pool=pool, looks=setting.looks)


def once(data: evidence.Evidence, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` returns, kept for the session as long as it is about these labels.

    Moving the threshold asks again and again, and must not go through a million labels every time.
    """
    cache = st.session_state.get("tune_kept")
    if cache is None or cache[0] is not data:
        cache = st.session_state["tune_kept"] = (data, {})
    results: dict[Hashable, T] = cache[1]
    if key not in results:
        results[key] = make()
    return results[key]


def chance(data: evidence.Evidence, setting: Setting, point: OperatingPoint) -> float | None:
    """The probability that a measured precision misses its target; None if it is bounded or certified."""
    if setting.strength_in_force == "bounded" or point.guarantee:
        return None
    goal = goal_of(point, setting.moved_from)
    return once(data, ("chance", goal), lambda: chance_below(data.sweep, goal, rng=np.random.default_rng(0)))


def state_of(store: Store, data: evidence.Evidence, setting: Setting, point: OperatingPoint) -> PointState:
    """What is known against the point, by these labels and by rechecks of its threshold."""
    return known_bad.state_of_choice(
        store, data, point, chance=chance(data, setting, point), moved_from=setting.moved_from
    )


def better_steps(
    store: Store, data: evidence.Evidence, setting: Setting, point: OperatingPoint, state: PointState
) -> tuple[BetterStep, ...]:
    """What to do instead of releasing a point that is known to be bad, the best step first."""
    names, goal = sample_names(data.sample), goal_of(point, setting.moved_from)

    def find() -> tuple[BetterStep, ...]:
        runs = configs_by_detector(store)
        others = (evidence_of(store, configs[-1], names) for name, configs in runs.items() if name != data.config.name)
        return find_better_steps(data, goal, point, state, others)

    return once(data, ("better", goal, setting.strength_in_force, state), find)


def traffic(store: Store, data: evidence.Evidence) -> Pool:
    pool = counted_traffic(store, data)
    return scored_traffic(store, data) if pool is None else pool


def counted_traffic(store: Store, data: evidence.Evidence) -> Pool | None:
    """The traffic in which flags are counted; None where the detector was run on too little of it."""
    return _traffic(store, data.config, sample_names(data.sample), data)


def traffic_per_day(store: Store, data: evidence.Evidence) -> float | None:
    """How many traces came a day, in the window that the labels stand for."""
    return _per_day(store, sample_names(data.sample), data)


@shell.cached_read(None, "traces", "samples")
def _per_day(store: Store, sample: SampleNames, _data: evidence.Evidence) -> float | None:
    return read_traffic_per_day(store, _data.sample)


@shell.cached_read("Reading the traffic's scores …", *shell.EVIDENCE, entries=20)
def _traffic(store: Store, config: Config, sample: SampleNames, _data: evidence.Evidence) -> Pool | None:
    return read_traffic(store, _data)


def span_of(data: evidence.Evidence) -> tuple[float, float]:
    """The span of the scores with some room on both sides, so that a threshold may flag nothing or everything."""
    thresholds = data.sweep.thresholds
    low, high = float(thresholds.min()), float(thresholds.max())
    room = 0.03 * (high - low) or max(abs(low) * 0.5, 0.5)
    return low - room, high + room


def name_of(setting: Setting) -> str:
    """What the chart of a setting stands for: a configuration on the labels of a sample."""
    return repr(setting.where)


def limit_of(point: OperatingPoint) -> str:
    return limit(point.threshold, point.flag_when)
