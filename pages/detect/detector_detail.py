"""One detector: what it measures and has scored, its model, its last run, and what the next run would take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import streamlit as st

from calibrate import registry
from calibrate.backends import files
from calibrate.backends.chat import Estimate, chat
from calibrate.detectors.base import Detector
from calibrate.detectors.shared.external import is_external
from calibrate.errors import TouchstoneError
from calibrate.report.numbers import ago, count, duration, listed, money, number, share
from calibrate.types import Usage
from calibrate.workflow.detection import detectors as step
from db import Store
from pages import shell
from pages.components.run_view import queue
from pages.components.text import middle, plain, spoken
from pages.detect.detector_form import about, choose_budget, fields, needs

STATES = {
    "ready": ":material/check_circle: **Ready**",
    "no model needed": ":material/check_circle: **No model needed**",
    "missing": ":material/error: **Missing**",
    "imported": ":material/upload: **Scores are imported**",
}


def show(store: Store, overview: step.Overview, now: datetime) -> None:
    """The detector in words, with coverage, model and last run side by side."""
    detector = overview.detector
    with st.container(gap="small"):
        st.header(plain(detector.title), anchor=False)
        st.markdown(plain(about(detector)))
        if is_external(detector):
            st.caption(f"flags {detector.flag_when} a threshold · value: {plain(detector.unit)}")
        else:
            st.caption(
                f"{plain(detector.name)} · needs {plain(needs(detector))} · flags {detector.flag_when} a threshold "
                f"(the common recipe's is {detector.usual_threshold:g}) · value: {plain(detector.unit)}"
            )
    places = st.columns(3, gap="medium")
    with places[0], st.container(gap=None):
        st.caption("Coverage")
        _coverage(store, overview)
    with places[1], st.container(gap=None):
        st.caption("Model")
        st.markdown(STATES[overview.status.state])
        if is_external(detector):
            st.caption(f"revision {plain(overview.status.revision)}")
        elif overview.status.how or overview.status.revision:
            st.caption(spoken(overview.status.how or middle(overview.status.revision, 70)))
    if is_external(detector):
        return
    with places[2], st.container(gap=None):
        st.caption("Last run")
        _last_run(overview.measured, now)


def _coverage(store: Store, overview: step.Overview) -> None:
    covered = overview.coverage
    if overview.config is None:
        st.markdown(f"**Not run yet** on these {count(covered.total, 'trace')}")
        return
    part = f" ({share(covered.share)})" if covered.share is not None else ""
    st.markdown(f"**{count(covered.scored)} of {count(covered.total)} scored**{part}")
    changed = {k: v for k, v in overview.config.params.items() if registry.config_of(overview.detector).get(k) != v}
    if changed:
        st.caption(plain("with " + ", ".join(f"{key} {value}" for key, value in changed.items()), 200))
    if not step.is_current(store, overview.config):
        st.caption("with another model, prompt or list than now")
    if covered.why or covered.waiting:
        st.caption(f"Not scored: {plain(why_not(covered), 400)}")


def _last_run(last: step.Measured | None, now: datetime) -> None:
    if last is None:
        st.markdown("**Never**")
        st.caption("Its speed is known after the first run.")
        return
    st.markdown(f"**{_rate(last.rate)}**")
    st.caption(
        f"{count(last.scored, 'trace')} scored in {_seconds_taken(last.seconds)}, {ago(last.at, now)} (run {last.run})"
    )
    if last.usage.requests or last.usage.cached:
        st.caption(plain(_usage(last.usage)))


def _seconds_taken(seconds: float) -> str:
    return duration(seconds) if seconds >= 10 else f"{number(seconds, 2)} s"


def _rate(rate: float) -> str:
    return f"{number(rate, 3)} traces/s"


def _usage(usage: Usage) -> str:
    cached = f" ({count(usage.cached)} more from the cache)" if usage.cached else ""
    tokens = f"{count(usage.prompt_tokens)} tokens read, {count(usage.completion_tokens)} written"
    cost = "cost not known" if usage.cost is None else money(usage.cost)
    return f"{count(usage.requests, 'request')}{cached}, {tokens}, {cost}"


def why_not(covered: step.Coverage, most: int = 3) -> str:
    """The reasons for missing scores: "no sources (12), a refusal (3) and 2 more"."""
    waiting = {"not run yet": covered.waiting} if covered.waiting else {}
    return listed([f"{reason} ({count(n)})" for reason, n in {**waiting, **covered.why}.items()], most)


def settings(detector: Detector) -> Detector:
    """The detector with the parameters of its form. Raises BadInput if they do not fit together."""
    if not registry.parameters(type(detector)):
        return detector
    with st.container(border=True):
        st.markdown("**Parameters**")
        return registry.make(detector.name, fields(detector, columns=3))


def offer_run(store: Store, detector: Detector, scope: Mapping[str, Any], *, shown: str | None) -> None:
    """The run over what is missing: what it would take, and its budget.

    `shown` is what the page says already of a missing model.
    """
    if is_external(detector):
        st.caption("It is not run: import its scores on the Detect page.")
        return
    if why := detector.unavailable():
        st.caption(f":material/block: It cannot run here: {'see “Model” above' if why == shown else spoken(why)}.")
        return
    covered = step.coverage(store, detector, scope)
    if not covered.to_do:
        scored = f"{count(covered.scored)} of {count(covered.total, 'trace')} scored, nothing left to do"
        st.markdown(f":material/check: With these settings: {scored}.")
        return
    budget = choose_budget([detector])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Run over {count(covered.to_do, 'trace')}",
            type="primary",
            icon=":material/play_arrow:",
            on_click=queue,
            args=(store, [detector], scope, budget),
        )
        with st.container(gap=None, width="stretch"):
            try:
                _show_plan(detector, _planned(store, detector, scope, covered), covered)
            except TouchstoneError as error:  # a price table or a prompt that cannot be used
                st.caption(f":material/warning: {plain(str(error), 500)}")


def show_takes(store: Store, detector: Detector, scope: Mapping[str, Any]) -> None:
    """What a run over the rest would take with these parameters, without the button."""
    if why := detector.unavailable():
        st.caption(f":material/block: It cannot run here: {spoken(why)}.")
        return
    covered = step.coverage(store, detector, scope)
    if covered.to_do:
        _show_plan(detector, _planned(store, detector, scope, covered), covered)
    else:
        st.caption(f":material/check: With these settings: {count(covered.scored)} of {count(covered.total)} scored.")


def _show_plan(detector: Detector, plan: step.Plan, covered: step.Coverage) -> None:
    parts = [f"{count(covered.waiting)} not run yet"] if covered.waiting else []
    parts += [f"{count(covered.failed)} that failed"] if covered.failed else []
    # The coverage further up is that of the settings used last.
    remaining = f"{' and '.join(parts)} with these settings"
    if plan.seconds is None or plan.rate is None:
        st.caption(f"{remaining}. How long it takes is known after the first run.")
    else:
        st.caption(f"{remaining}: about {duration(plan.seconds)}, at the last run's {_rate(plan.rate)}.")
    if plan.estimate is not None:
        st.caption(plain(f"{_estimated_requests(plan.estimate, getattr(detector, 'model', ''))}{_basis(plan)}"))


def _estimated_requests(estimate: Estimate, model: str) -> str:
    cached = f", {count(estimate.cached)} more are answered already" if estimate.cached else ""
    tokens = f"about {_about(estimate.prompt_tokens)} tokens read, at most {_about(estimate.completion_tokens)} written"
    if estimate.cost is None:
        name = chat(model).model
        cost = f"What it costs is not known: no price of {name or 'the model'} in prices.csv, below"
    else:
        cost = f"At most {money(max(estimate.cost, 0.01) if estimate.cost else 0.0)}"
    return f"{count(estimate.requests, 'request')}{cached}; {tokens}. {cost}."


def _basis(plan: step.Plan) -> str:
    return f" Reckoned from {count(plan.looked_at)} of the traces." if plan.looked_at < plan.traces else ""


def _about(tokens: int) -> str:
    """12,300; 1.2 million: three digits are all that a guess is worth."""
    rounded = round(tokens, 3 - len(str(tokens)))
    return f"{number(rounded / 1e6, 3)} million" if rounded >= 1e6 else count(rounded)


def _planned(store: Store, detector: Detector, scope: Mapping[str, Any], covered: step.Coverage) -> step.Plan:
    about_it = json.dumps([detector.name, registry.config_of(detector), detector.revision(), dict(scope)], default=str)
    return _plan(store, about_it, files.version("prices.csv"), detector, scope, covered)


@shell.cached_read("Reckoning what it would ask …", *shell.EVIDENCE, "runs", "team", "replies", entries=100)
def _plan(
    store: Store,
    run: str,
    prices: str,
    _detector: Detector,
    _scope: Mapping[str, Any],
    _covered: step.Coverage,
) -> step.Plan:
    """Making a thousand prompts takes a moment, and a page is drawn often."""
    return step.plan(store, _detector, _scope, _covered)
