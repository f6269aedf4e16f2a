"""What is open in the loop, in the order in which it is to be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Step = Literal["import", "fix", "settle", "sample", "label", "detect", "tune", "release", "check", "done"]


@dataclass(frozen=True)
class Open:
    """The state of the loop for the newest sample of the traffic.

    `bad`: live thresholds that are known to be bad. `disputes`: labels that contradict each other. `drawn`: there is a
    sample; `current`: it was drawn this week. `unlabelled`: traces left to label. `released`: what is chosen is out,
    and no proposal waits. `checks`: live thresholds that somebody should look at, and models that the release does not
    know.
    """

    imported: bool = True
    bad: int = 0
    disputes: int = 0
    drawn: bool = True
    unlabelled: int = 0
    scored: bool = True
    chosen: bool = True
    released: bool = True
    checks: int = 0
    current: bool = True


def order_steps(state: Open) -> tuple[Step, ...]:
    """Every step that is open, the one to do now first; "done" only where none is.

    What does harm now comes first: a live threshold that is known to be bad, then disputes, which bend every figure.
    Then the loop in its order, up to the first step that the later ones wait for; then checks, and the next sample.
    """
    if not state.imported:
        return ("import",)
    steps: list[Step] = []
    if state.bad:
        steps.append("fix")
    if state.disputes:
        steps.append("settle")
    loop: dict[Step, bool] = {
        "sample": not state.drawn,
        "label": bool(state.unlabelled),
        "detect": not state.scored,
        "tune": not state.chosen,
        "release": not state.released,
    }
    waiting = next((step for step, is_open in loop.items() if is_open), None)
    if waiting is not None:
        steps.append(waiting)
    if state.checks:
        steps.append("check")
    if waiting is None and not state.current:
        steps.append("sample")
    return tuple(steps) or ("done",)
