"""Verbs about the thresholds file."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import now, pairs, store, user
from calibrate.errors import BadInput
from calibrate.runtime import decide as decide_one
from calibrate.runtime import load
from calibrate.thresholds.files import verify as verify_file

TIERS = ("page", "signal", "off")


def release(args: Namespace) -> Answer:
    from calibrate.steps import release as step

    out = Path(args.out)
    found = store(args)
    if args.again is not None:
        row = step.again(found, args.again, out)
    else:
        tiers: dict[str, Any] = pairs(args.tier, "--tier")
        for detector, tier in tiers.items():
            if tier not in TIERS:
                raise BadInput(f"--tier {detector}={tier}: a tier is one of {', '.join(TIERS)}")
        names = args.detectors or None
        row = step.release(found, detectors=names, tiers=tiers, note=args.note, by=user(), now=now(), out=out)
    document = {"version": row.version, "sha256": row.sha256, "path": str(out)}
    return Answer(document, f"version {row.version} is in {out} (sha256 {row.sha256[:16]}…)")


def verify(args: Namespace) -> Answer:
    report = verify_file(args.file)
    if report.ok:
        text = (
            f"{args.file} is whole: version {report.version}, released {report.released_at} by {report.released_by}, "
            f"{len(report.detectors)} detectors ({', '.join(report.detectors)})"
        )
        return Answer(asdict(report), text)
    return Answer(asdict(report), f"{args.file} must not be used: {report.problem}", exit_code=2)


def decide(args: Namespace) -> Answer:
    thresholds = load(args.file)
    decision = decide_one(thresholds, _scores(args.scores))
    lines = [f"{decision.verdict} (release {decision.version}, tier {decision.tier})", *decision.reasons]
    if decision.missing:
        lines.append(f"no score from: {', '.join(decision.missing)}")
    if decision.unknown:
        lines.append(f"not in this release, ignored: {', '.join(decision.unknown)}")
    return Answer(asdict(decision), "\n".join(lines))


def _scores(path: str) -> dict[str, float | None]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        scores = json.loads(text)
    except OSError as error:
        raise BadInput(f"cannot read the scores in {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{'standard input' if path == '-' else path} is not JSON: {error}") from error
    if not isinstance(scores, dict):
        raise BadInput(f'{path} should hold one object like {{"rouge_l": 0.31, "schema": null}}')
    return scores
