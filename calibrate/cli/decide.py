"""`decide`: what a runtime would decide from scores. Works from the wheel alone."""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from calibrate import registry, runtime
from calibrate.cli import Answer
from calibrate.cli.output import warn
from calibrate.errors import BadInput
from calibrate.report.sentences import known_bad
from calibrate.thresholds.states import states_in


def run(args: Namespace) -> Answer:
    thresholds = runtime.load(args.file)
    scores = _read_scores(args.scores)
    decision = runtime.decide(thresholds, scores, on_missing=args.on_missing)
    for name in decision.scored:
        _check_bounds(name, scores[name])
    lines = [f"{decision.verdict} (release {decision.version}, tier {decision.tier})", *decision.reasons]
    if decision.missing:
        lines.append(f"no score from: {', '.join(decision.missing)}")
    if decision.unknown:
        lines.append(f"not in this release, ignored: {', '.join(decision.unknown)}")
    cautions = known_bad.cautions(states_in(thresholds))
    warn(cautions)
    return Answer({**asdict(decision), "known_bad": cautions}, "\n".join(lines))


def _read_scores(path: str) -> dict[str, float | None]:
    name = "standard input" if path == "-" else path
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        scores = json.loads(
            text, object_pairs_hook=_unique, parse_float=_finite, parse_int=_finite, parse_constant=_not_a_score
        )
    except OSError as error:
        raise BadInput(f"cannot read the scores in {name}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is not JSON: {error}") from error
    if not isinstance(scores, dict):
        raise BadInput(f'{name} should hold one object like {{"rouge_l": 0.31, "schema": null}}')
    return scores


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that names a detector twice: JSON would silently keep the last score."""
    scores = dict(pairs)
    if len(scores) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"the scores name {repeated!r} twice: give one score per detector")
    return scores


def _finite(text: str) -> float:
    number = float(text)
    return _not_a_score(text[:20]) if math.isinf(number) else number


def _not_a_score(text: str) -> NoReturn:
    raise BadInput(f"{text} is no score: give a finite number, or null where a detector could not score")


def _check_bounds(name: str, score: float | None) -> None:
    """Refuse a score outside its detector's range: it comes from elsewhere, or is in another unit."""
    if score is None or name not in registry.names():  # a detector of another package, which this machine does not have
        return
    low, high = registry.get(name).bounds
    slack = 1e-6 * max(abs(score), 1.0)  # a score may have passed through single precision
    if not low - slack <= score <= high + slack:
        raise BadInput(f"the score {score:.6g} of {name} cannot be: it is from {low:g} to {high:g}")
