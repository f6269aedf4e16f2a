"""Verbs about traces, samples and labels."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from datetime import datetime
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import now, store, table
from calibrate.errors import BadInput
from calibrate.sanitize import visible
from calibrate.stats.sampling import designs
from calibrate.types import Sample, TraceFilter
from db import Store


def run(args: Namespace) -> Answer:
    from calibrate.workflow.sampling.topup import top_up

    found, at = store(args), now()
    asked = [name for name in ("list", "more", "plan") if getattr(args, name) not in (None, False)]
    if len(asked) > 1:
        raise BadInput(f"--{asked[0]} and --{asked[1]} are two things to do: ask for one at a time")
    if args.list:
        return _listed(found, _named(args, "--list", "--list"))
    if args.more is not None:
        name = _named(args, "--more", "--more 50")
        return _topped_up(args, top_up(found, name, more=args.more, seed=args.seed, now=at))
    since = designs.window_start(designs.parse_since(args.since), at)
    where = TraceFilter(since=since, undated=since is None)
    if args.plan is not None:
        return _planned(found, where, args)
    drawn, why = _drawn(found, where, args, now=at)
    text = f"{drawn.name}: {drawn.size} of {drawn.pool:,} traces ({drawn.design}, seed {drawn.seed})"
    if why:
        text += f"; at random, as octave cannot draw them: {why}"
    if drawn.size < args.size:
        text += f"; {args.size:,} were asked for, and there are no more"
    if drawn.undated and since is not None:
        text += f"; {drawn.undated:,} undated traces were left out (--since all lets them in)"
    document = {**_sample_document(drawn), "requested": args.size, "why_random": why}
    return Answer(document, f"{text}\n{_strata(drawn)}".rstrip())


def _drawn(found: Store, where: TraceFilter, args: Namespace, *, now: datetime) -> tuple[Sample, str | None]:
    """The sample, and why it is at random though the window is scored."""
    from calibrate.workflow.sampling import sample as step
    from calibrate.workflow.sampling.frame import NoStrata

    def draw(design: str) -> Sample:
        cut = _cut(found, args.cut) if args.cut else None
        name = args.name or designs.default_name(now)
        return step.draw(
            found, name, size=args.size, design=design, by=args.by, where=where, seed=args.seed, now=now, cut=cut,
            fresh=design == "fresh-flagged",
        )  # fmt: skip

    if args.design != "auto":
        return draw(args.design), None
    try:
        return draw(step.usual_design(found, where)), None
    except NoStrata as error:
        return draw("random"), str(error).partition(": ")[0]


def _listed(found: Store, name: str) -> Answer:
    """The members of a sample, in labelling order."""
    from calibrate.workflow.detection.detect import no_sample

    sample = found.samples.get(name)
    if sample is None:
        raise no_sample(found, name)
    lines = found.samples.lines(sample.id)
    rows = [("trace", "stratum", "chance", "gold")]
    rows += [
        (visible(one.trace_id), visible(one.stratum), f"{one.inclusion_probability:.4g}", one.gold or "–")
        for one in lines
    ]
    return Answer({**_sample_document(sample), "members": [asdict(one) for one in lines]}, table(rows, right=(2,)))


def _named(args: Namespace, option: str, example: str) -> str:
    if not args.name:
        raise BadInput(f"{option} is of a sample that there is: name it, as in `sample 2026-W47 {example}`")
    return str(args.name)


def _cut(found: Store, given: str) -> designs.Cut:
    from calibrate.workflow.detection.configurations import resolve_config

    name, _, threshold = given.partition("=")
    try:
        return designs.Cut(resolve_config(found, name.strip()).id, float(threshold))
    except ValueError:
        raise BadInput(f"--cut {given!r} should read DETECTOR=THRESHOLD, like token_overlap=0.4") from None


def _topped_up(args: Namespace, sample: Sample) -> Answer:
    more = sample.options["top_ups"][-1]["more"]
    text = f"{sample.name}: {more} more of {sample.pool:,} traces, {sample.size} in all ({sample.design})"
    if more < args.more:
        text += f"; {args.more:,} were asked for, and there are no more"
    return Answer({**_sample_document(sample), "requested": args.more, "added": more}, f"{text}\n{_strata(sample)}")


def _sample_document(sample: Sample) -> dict[str, Any]:
    return {
        "name": sample.name,
        "size": sample.size,
        "pool": sample.pool,
        "undated": sample.undated,
        "design": sample.design,
        "seed": sample.seed,
        "strata": {
            name: {"population": size, "drawn": n, "inclusion_probability": n / size}
            for name, (size, n) in sample.strata.items()
        },
    }


def _strata(sample: Sample) -> str:
    """The strata of a sample that has several, and what one label of each stands for."""
    if len(sample.strata) < 2:
        return ""
    rows = [("stratum", "traces", "drawn", "one label stands for")]
    rows += [
        (visible(name, 40), f"{size:,}", f"{n:,}", f"{size / n:,.1f}" if n else "–")
        for name, (size, n) in sample.strata.items()
    ]
    return table(rows, right=(1, 2, 3))


def _planned(found: Store, where: TraceFilter, args: Namespace) -> Answer:
    from calibrate.report.sentences import sampling as sentences
    from calibrate.workflow.sampling import sizing

    prevalence = sizing.last_prevalence(found)
    share = sizing.PREVALENCE if prevalence is None else prevalence
    plan = sizing.plan(found, where, wish=args.plan, precision=args.precision, prevalence=share, by=args.by)
    caution = sentences.doubt(plan.doubt)
    document = {
        "precision": args.precision,
        "halfwidth": args.plan,
        "flag_rate": plan.flag_rate,
        "detector": plan.detector,
        "sample": plan.sample,
        "labels": plan.labels,
        "caution": caution,
    }
    rows = [("design", "labels needed")]
    rows += [(name, f"{n:,}" if n is not None else "more than there are") for name, n in plan.labels.items()]
    known = f"estimated from the labels of {plan.sample}" if plan.sample else "the share that is assumed hallucinated"
    head = (
        f"precision {args.precision:g} known to ±{args.plan:g}, for a threshold"
        f"{f' of {plan.detector}' if plan.detector else ''} that flags {plan.flag_rate:.2%} of the window ({known})"
    )
    lines = [head, table(rows, right=(1,)), *([f"caution: {caution}"] if caution else [])]
    return Answer(document, "\n".join(lines))
