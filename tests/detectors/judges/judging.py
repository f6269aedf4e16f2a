"""Judges at an endpoint that says what a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from calibrate import registry
from calibrate.types import Score, Trace
from tests.detectors.examples import BATTERIES, WARRANTY, trace
from tests.detectors.scripted import Endpoint, Script

ON_CONTEXT = ("judge_verdict", "judge_yes_no", "judge_score")
JUDGES = (*ON_CONTEXT, "selfcheck_judge")
CLEAN_JSON = '{"items": [{"sentence": 1, "claim": "all", "label": "supported", "reason": "so told"}]}'
ONE = replace(
    trace("The X200 is covered for 24 months.", WARRANTY, BATTERIES), alternatives=("Two years.", "For 24 months.")
)

Start = Callable[[Script | str], Endpoint]


def score(name: str, one: Trace = ONE, **params: Any) -> Score:
    (found,) = registry.make(name, params).score([one])
    return found


def value(name: str, one: Trace = ONE, **params: Any) -> float:
    found = score(name, one, **params)
    assert found.value is not None, (found.reason, found.evidence)
    return found.value


def unparsed(name: str, one: Trace = ONE, **params: Any) -> Score:
    found = score(name, one, **params)
    assert (found.status, found.value) == ("failed", None)
    assert (found.reason or "").startswith("unparsed: "), found.reason
    return found


def verdict(*labels: str, sentence: int = 1) -> str:
    return json.dumps({"items": [{"sentence": sentence, "claim": f"claim {i}", "label": label, "reason": f"reason {i}"}
                                 for i, label in enumerate(labels)]})  # fmt: skip
