"""The verb that walks through a certification: every call does the next step that can be done and says what is next."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, parse_pairs, user
from calibrate.errors import BadInput
from calibrate.report.sentences import certification as sentences
from calibrate.stats.certification.certificates import NotCertifiable, Plan
from calibrate.workflow.certification import attempts
from calibrate.workflow.certification import certify as step
from calibrate.workflow.certification.attempts import CertificationStatus
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import loading
from db import Store


def run(args: Namespace) -> Answer:
    registry.get(args.detector)
    found = open_store(args)
    at = attempts.latest_status(found, args.detector)
    if args.save and (at is None or at.stage not in ("labelled", "certified")):
        stands = sentences.status(at) if at else "no attempt was planned yet."
        raise BadInput(f"nothing is certified that could be saved: {stands} `certify {args.detector}` goes on")
    if at is None or _again(at) or _other(found, args, at):
        planned = _plan(found, args, at)
        if isinstance(planned, NotCertifiable):
            none = {
                "detector": args.detector,
                "stage": None,
                "why": sentences.no_plan(planned),
                "needed": planned.needed,
            }
            return Answer(none, f"no plan: {sentences.no_plan(planned)}", exit_code=2)
        at, did = attempts.status_of(found, planned), "planned"
    elif at.stage == "planned":
        at, did = attempts.status_of(found, step.draw(found, at.attempt, fewer=args.fewer, now=now())), "drawn"
    elif at.stage == "labelled":
        at, did = attempts.status_of(found, step.finish(found, at.attempt, now=now())), "tested"
    else:
        did = None
    save = args.save and at.stage == "certified"
    if save:
        step.save(found, at.attempt, by=user(), now=now())
    lines = [sentences.status(at), _saved(at) if save else _next(found, at)]
    if args.save and not save:
        lines.append("not saved: nothing is certified yet")
    return Answer(_document(at, did, saved=save), "\n".join(lines), exit_code=2 if args.save and not save else 0)


def _again(at: CertificationStatus) -> bool:
    """Whether the newest attempt failed where another may do."""
    return at.outcome is not None and at.outcome.needed is not None


def _other(found: Store, args: Namespace, at: CertificationStatus) -> bool:
    """Whether the options ask for another plan than the newest: the same command again goes on with it."""
    config = (
        configurations.resolve_config(found, args.detector, parse_pairs(args.param, "--param")) if args.param else None
    )
    asked = (
        (tuple(args.sample) if args.sample else None, at.terms.samples),
        (args.target, at.plan.target),
        (args.labels, at.terms.budget),
        (args.seed, at.terms.seed),
        (config and config.id, at.attempt.config_id),
    )
    return any(given is not None and given != standing for given, standing in asked)


def _plan(found: Store, args: Namespace, at: CertificationStatus | None) -> attempts.Attempt | NotCertifiable:
    """A plan on the labels named, else on those of the attempt before."""
    names = args.sample or (at.terms.samples if at else ()) or None
    config = found.scores.get_config(at.attempt.config_id) if at and not args.param else None
    data = loading.load_evidence(
        found, args.detector, sample=names, params=parse_pairs(args.param, "--param"), config=config
    )
    usual = at.plan.target if at else step.TARGET
    target = usual if args.target is None else args.target
    return step.plan(found, data, target=target, budget=args.labels, seed=args.seed, by=user(), now=now())


def _next(found: Store, at: CertificationStatus) -> str:
    name = at.attempt.detector
    if at.stage == "planned":
        there = step.available(found, at.attempt)
        return f"next: {_drawing(name, at.plan, there)}"
    if at.stage == "drawn" and at.fresh:
        return f"next: label the sample {at.fresh.name} (the Label page, or `labels import`), then `certify {name}`"
    if at.stage == "labelled":
        return f"next: `certify {name}` tests the cuts on these labels, once"
    if at.stage == "certified":
        return f"next: `certify {name} --save` keeps it as the operating point"
    if at.outcome and at.outcome.needed:
        return f"next: `certify {name}` plans another attempt on all labels so far"
    return "next: label a new sample of more traffic, lower --target, or keep the detector in tier signal"


def _drawing(name: str, plan: Plan, there: int) -> str:
    """How a plan goes on with the fresh flagged traces that are there."""
    if there >= plan.labels:
        return f"`certify {name}` draws them; {there:,} fresh flagged traces are there"
    more = f"score what came in since (`detect {name} --all`), or wait: {there:,} fresh flagged traces are there"
    if there < (least := step.least(plan)):
        return f"{more}, and fewer than {least} certify nothing"
    return f"{more}; or `certify {name} --fewer` draws these, less likely to certify, and as valid"


def _saved(at: CertificationStatus) -> str:
    return f"saved; `release --tier {at.attempt.detector}=page` takes it into the next version"


def _outcome(at: CertificationStatus) -> dict[str, Any] | None:
    return {**asdict(at.outcome), "why": sentences.why(at.plan, at.outcome)} if at.outcome else None


def _document(at: CertificationStatus, did: str | None, *, saved: bool) -> dict[str, Any]:
    plan = at.plan
    return {
        "detector": at.attempt.detector,
        "stage": at.stage,
        "did": did,
        "samples": list(at.terms.samples),
        "attempt": plan.attempt,
        "target": plan.target,
        "level": plan.level,
        "labels": plan.labels,
        "chance": plan.chance,
        "cuts": list(plan.cuts),
        "flag_when": plan.flag_when,
        "seed": at.terms.seed,
        "fresh": at.fresh.name if at.fresh else None,
        "drawn": at.fresh.size if at.fresh else 0,
        "labelled": at.labelled,
        "outcome": _outcome(at),
        "saved": saved,
    }
