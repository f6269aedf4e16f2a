"""`seen`."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.output import table
from calibrate.report.numbers import share
from calibrate.report.sentences.figures import interval
from calibrate.sanitize import visible


def run(args: Namespace) -> Answer:
    from calibrate.report.sentences import models_seen as sentences
    from calibrate.report.sentences.evidence import uneven
    from calibrate.workflow.upgrade import models_seen as step

    found = step.registry(open_store(args), by=args.by, sample=args.sample)
    head = (args.by, "traces", "share", "first seen", "last seen", "release", "hallucinated", "95%", "labels")
    rows = [tuple(visible(cell, 60) for cell in head), *(_line(one) for one in found.values)]
    lines = [table(rows, right=(1, 2, 6, 7, 8))]
    lines += [f"and {found.beyond:,} more with fewer traces"] if found.beyond else []
    change, caution = found.step, uneven(found.uneven)
    no_step = sentences.no_step(change) if isinstance(change, step.NoStep) else None
    if isinstance(change, step.Step):
        lines.append(visible(sentences.step(change), 500).replace("\n", " "))
    lines += [f"caution: {caution}"] if caution else []
    document = {
        "by": found.by,
        "version": found.version,
        "sample": found.sample,
        "values": [
            {**asdict(one), "first": one.first and one.first.isoformat(), "last": one.last and one.last.isoformat()}
            for one in found.values
        ],
        "beyond": found.beyond,
        "per": found.per,
        "traffic": {name: {day.isoformat(): n for day, n in counts.items()} for name, counts in found.traffic.items()},
        "step": asdict(change.difference) if isinstance(change, step.Step) else None,
        "no_step": no_step,
        "caution": caution,
    }
    return Answer(document, "\n".join(lines))


def _line(one: Any) -> tuple[str, ...]:
    days = [at.strftime("%Y-%m-%d") if at else "–" for at in (one.first, one.last)]
    prevalence = "–" if one.prevalence.value is None else share(one.prevalence.value)
    known = {True: "made on it", False: "made without", None: ""}[one.released]
    name = visible(one.name, 60).replace("\n", " ")
    return (
        name, f"{one.traces:,}", share(one.share), *days, known, prevalence,
        interval(one.prevalence) if one.labels else "–", f"{one.labels:,}",
    )  # fmt: skip
