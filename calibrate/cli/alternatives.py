"""The verb about alternatives."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from calibrate import settings
from calibrate.backends.chat import Estimate
from calibrate.cli import Answer
from calibrate.cli.common import said, say, store
from calibrate.workflow.detection import alternatives as step
from calibrate.workflow.detection.detect import scope_of


def run(args: Namespace) -> Answer:
    found = store(args)
    labelled = args.labelled or (args.sample is None and not args.everything)
    scope = scope_of(sample=args.sample, labelled=labelled, everything=args.everything)
    settings.chat()  # a value that cannot be is said before anything else
    how = {"n": args.n, "temperature": args.temperature, "max_tokens": args.max_tokens}
    if args.estimate:
        return _estimate(step.estimate(found, scope, **how))

    def on_progress(counts: step.Counts) -> bool:
        say(f"{counts.done:,} of {counts.total:,} traces, {_dollars(counts.usage.cost)}")
        return True

    counts = step.draw(found, scope, **how, budget=args.budget, on_progress=on_progress)
    said()
    return _report(counts)


def _report(counts: step.Counts) -> Answer:
    parts = [
        f"{counts.drawn:,} drawn",
        f"{counts.stored:,} had drawn ones already",
        f"{counts.given:,} came with some",
        f"{counts.no_question:,} have no question",
        f"{counts.failed:,} failed",
        f"{counts.left:,} left",
    ]
    usage = counts.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    lines = [
        f"alternatives for {counts.total:,} traces: {', '.join(parts)}",
        f"{usage.requests:,} requests, {tokens:,} tokens, {_dollars(usage.cost)}",
        *(f"  {why} ({n:,})" for why, n in counts.why.most_common(3)),
    ]
    return Answer(counts.to_json(), "\n".join(lines), 1 if counts.failed or counts.left else 0)


def _estimate(found: Estimate) -> Answer:
    tokens = f"about {found.prompt_tokens:,} tokens in and at most {found.completion_tokens:,} out"
    cost = _dollars(found.cost) if found.cost is None else f"at most {_dollars(found.cost)}"
    text = f"{found.requests:,} requests ({found.cached:,} more are answered already), {tokens}: {cost}"
    return Answer(asdict(found), text)


def _dollars(cost: float | None) -> str:
    return "price not known" if cost is None else f"${cost:.4f}"
