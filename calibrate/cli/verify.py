"""`verify`: check a thresholds file. Works from the wheel alone."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from calibrate.cli import Answer
from calibrate.thresholds import files


def run(args: Namespace) -> Answer:
    report = files.verify(args.file)
    if report.ok:
        text = (
            f"{args.file} is whole: version {report.version}, released {report.released_at} by {report.released_by}, "
            f"{len(report.detectors)} detectors ({', '.join(report.detectors)})"
        )
        if report.ensembles:
            text += f"; ensembles: {', '.join(report.ensembles)}"
        return Answer(asdict(report), text)
    return Answer(asdict(report), f"{args.file} must not be used: {report.problem}", exit_code=2)
