"""`alternatives`: draw other answers to the same questions from a chat endpoint."""

from __future__ import annotations

from argparse import Namespace

from calibrate import settings
from calibrate.backends.chat import Estimate
from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.progress import progress
from calibrate.cli.signals import when_stopped
from calibrate.report import numbers
from calibrate.report.numbers import count
from calibrate.workflow.detection import alternatives as step
from calibrate.workflow.detection.detect import scope_of

MOST_REASONS = 3


def run(args: Namespace) -> Answer:
    store = open_store(args)
    labelled = args.labelled or (args.sample is None and not args.everything)
    scope = scope_of(sample=args.sample, labelled=labelled, everything=args.everything)
    settings.chat()  # raises for a setting that is wrong, before anything else
    terms = {"n": args.n, "temperature": args.temperature, "max_tokens": args.max_tokens}
    if args.estimate:
        return _report_estimate(step.estimate(store, scope, **terms))
    drawn = 0
    stopped = when_stopped(
        lambda: f"{count(drawn, 'trace')} got alternatives, kept; the same command goes on from there"
    )
    with stopped, progress(args, "asking") as advance:

        def on_progress(counts: step.Counts) -> bool:
            nonlocal drawn
            drawn = counts.drawn
            advance(counts.done, counts.total, f"asking, {numbers.money(counts.usage.cost)} so far")
            return True

        counts = step.draw(store, scope, **terms, budget=args.budget, on_progress=on_progress)
    return _report(counts)


def _report(counts: step.Counts) -> Answer:
    parts = [
        f"{count(counts.drawn)} drawn",
        f"{count(counts.stored)} had drawn ones already",
        f"{count(counts.given)} came with some",
        f"{count(counts.no_question)} have no question",
        f"{count(counts.failed)} failed",
        f"{count(counts.left)} left",
    ]
    usage = counts.usage
    tokens = count(usage.prompt_tokens + usage.completion_tokens, "token")
    lines = [
        f"alternatives for {count(counts.total, 'trace')}: {', '.join(parts)}",
        f"{count(usage.requests, 'request')}, {tokens}, {_cost(usage.cost)}",
        *(f"  {reason} ({count(n)})" for reason, n in counts.why.most_common(MOST_REASONS)),
    ]
    return Answer(counts.to_json(), "\n".join(lines), 1 if counts.failed or counts.left else 0)


def _report_estimate(estimate: Estimate) -> Answer:
    tokens = f"about {count(estimate.prompt_tokens)} tokens in and at most {count(estimate.completion_tokens)} out"
    cost = _cost(None) if estimate.cost is None else f"at most {numbers.money(estimate.cost)}"
    requests = f"{count(estimate.requests, 'request')} ({count(estimate.cached)} more are answered already)"
    return Answer(estimate, f"{requests}, {tokens}: {cost}")


def _cost(dollars: float | None) -> str:
    return "price unknown" if dollars is None else numbers.money(dollars)
