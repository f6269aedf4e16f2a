"""Verbs about detectors and runs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from calibrate import settings
from calibrate.backends.chat import Estimate
from calibrate.cli import Answer
from calibrate.cli.common import pairs, store, table
from calibrate.detectors.base import Detector
from calibrate.errors import TouchstoneError
from calibrate.workflow.detection import detect as step
from calibrate.workflow.detection import detectors as about
from db import Store
from db.runs import Run


def run(args: Namespace) -> Answer:
    found = store(args)
    labelled = args.labelled or (args.sample is None and not args.everything)
    scope = step.scope_of(sample=args.sample, labelled=labelled, everything=args.everything)
    params = pairs(args.param, "--param")
    chosen = step.chosen_of(args.detectors, params)
    if any(about.asks_chat(one) for one in chosen):
        settings.chat()  # a value that cannot be is to be mended first; without an endpoint the rest still runs
    if args.estimate:
        return _estimate(found, chosen, scope)
    queued = step.queue(found, args.detectors, scope, params=params, budget=args.budget)
    finished = step.work(found, run_id=queued.id)
    if finished is None:
        return Answer({"run": queued.id, "detectors": {}}, f"run {queued.id} was taken by a worker that was waiting")
    return _report(finished)


def _estimate(found: Store, chosen: Sequence[Detector], scope: Mapping[str, Any]) -> Answer:
    """What the run would take; it is not run."""
    plans = {one.name: _planned(found, one, scope) for one in chosen}
    rows: list[tuple[str, ...]] = [
        ("detector", "traces", "time", "requests", "answered already", "tokens in", "tokens out", "cost at most", "")
    ]
    for name, one in plans.items():
        numbers = ("requests", "cached", "prompt_tokens", "completion_tokens")
        asked = [f"{one[key]:,}" if one["asks"] else "" for key in numbers]
        time = "not known" if one["seconds"] is None else f"{one['seconds']:,.0f} s"
        cost = "price not known" if one["cost"] is None else f"${one['cost']:,.4f}"
        rows.append((name, f"{one['traces']:,}", time, *asked, cost if one["asks"] else "", one["unavailable"] or ""))
    return Answer({"estimate": plans}, f"{table(rows, right=range(1, 8))}\nNothing was scored and nothing sent.")


def _planned(found: Store, detector: Detector, scope: Mapping[str, Any]) -> dict[str, Any]:
    plan = about.plan(found, detector, scope, about.coverage(found, detector, scope))
    asked = asdict(plan.estimate or Estimate(0, 0, 0, 0, None))
    how = about.status(found, detector).how
    return {
        "traces": plan.traces,
        "seconds": plan.seconds,
        "asks": plan.estimate is not None,
        **asked,
        "looked_at": plan.looked_at,
        "unavailable": how,
    }


def _report(run: Run) -> Answer:
    if run.status == "failed":
        raise TouchstoneError(f"run {run.id} failed: {run.error}")
    keys = ("scored", "abstained", "failed", "refusals", "reused", "seconds", "why", "usage")
    # Runs from before refusals and usage were counted have neither.
    counts = {name: {key: tally.get(key, 0) for key in keys} for name, tally in run.counts.items()}
    rows: list[tuple[str, ...]] = [("detector", "scored", "reused", "abstained", "refusals", "failed", "seconds", "")]
    for name, tally in counts.items():
        why = "; ".join(f"{reason} ({n})" for reason, n in list(tally["why"].items())[:3])
        numbers = [str(tally[key]) for key in ("scored", "reused", "abstained", "refusals", "failed")]
        rows.append((name, *numbers, f"{tally['seconds']:.1f}", why))
    state = "" if run.status == "done" else f" ({run.status})"
    lines = [f"run {run.id}{state}", table(rows, right=range(1, 7)), *_spent(counts)]
    broken = [name for name, tally in counts.items() if tally["failed"] and not tally["scored"] + tally["reused"]]
    return Answer({"run": run.id, "detectors": counts}, "\n".join(lines), exit_code=1 if broken else 0)


def _spent(counts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, tally in counts.items():
        used = tally["usage"] or {}
        if used.get("requests") or used.get("cached"):
            tokens = used["prompt_tokens"] + used["completion_tokens"]
            cost = "price unknown" if used["cost"] is None else f"${used['cost']:.4f}"
            kept = f", {used['cached']:,} answers already there" if used["cached"] else ""
            yield f"{name} sent {used['requests']:,} requests: {tokens:,} tokens, {cost}{kept}"
