"""The order of what is open: it never says done while something is, whatever else is so."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from calibrate.workflow.week.next_steps import Open, order_steps

NOTHING_OPEN = Open()
ORDER = ("fix", "settle", "sample", "label", "detect", "tune", "release", "check")


def test_nothing_is_left_only_where_nothing_is_open() -> None:
    assert order_steps(NOTHING_OPEN) == ("done",)


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"imported": False}, "import"),
        ({"bad": 1}, "fix"),
        ({"disputes": 19}, "settle"),
        ({"drawn": False}, "sample"),
        ({"unlabelled": 4}, "label"),
        ({"scored": False}, "detect"),
        ({"chosen": False}, "tune"),
        ({"released": False}, "release"),
        ({"checks": 1}, "check"),
        ({"current": False}, "sample"),
    ],
)
def test_each_thing_that_is_open_is_the_step_to_do(changes: dict[str, int], step: str) -> None:
    assert order_steps(replace(NOTHING_OPEN, **changes)) == (step,)


def test_what_does_harm_comes_first_whatever_else_is_open() -> None:
    """All 512 states of the loop: the order is strict, done stands alone, and no alarm is left out."""
    for bad, disputes, drawn, unlabelled, scored, chosen, released, checks, current in product((0, 1), repeat=9):
        state = Open(
            bad=bad, disputes=disputes, drawn=bool(drawn), unlabelled=unlabelled, scored=bool(scored),
            chosen=bool(chosen), released=bool(released), checks=checks, current=bool(current),
        )  # fmt: skip
        steps = order_steps(state)
        alarms = {"fix": bad, "settle": disputes, "check": checks}
        assert {name for name, is_open in alarms.items() if is_open} == set(steps) & set(alarms)
        assert ("done" in steps) == (state == NOTHING_OPEN)
        assert steps[0] == ("fix" if bad else "settle" if disputes else steps[0])
        alarms_first = [ORDER.index(name) for name in steps if name in ("fix", "settle")]
        assert alarms_first == sorted(alarms_first)
        assert len(set(steps)) == len(steps)
