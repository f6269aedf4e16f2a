"""`certify`: prove a threshold's precision. Every call does the next step that it can, and says what follows."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace

from calibrate import registry
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.evidence import labels_lines
from calibrate.cli.pairs import parse_pairs
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences.labelling.labels import too_few_count
from calibrate.report.sentences.tuning import certification as sentences
from calibrate.stats.certification.certificates import NotCertifiable, Offer, Plan
from calibrate.stats.certification.walks import AT_LEAST
from calibrate.stats.intervals.exact_tests import left_after
from calibrate.types import FlagWhen, Part
from calibrate.workflow.certification import attempts, planning
from calibrate.workflow.certification import certify as step
from calibrate.workflow.certification.attempts import CertificationStatus, Outcome, Overturned, Stage, certify_command
from calibrate.workflow.certification.in_segment import in_segment
from calibrate.workflow.detection import configurations
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.evidence.labels_at_hand import labels_at_hand
from calibrate.workflow.tuning.segments import full_name
from db import Store


@dataclass(frozen=True, slots=True)
class CertifyDocument:
    """Where an attempt stands, and what this call did."""

    detector: str
    segment: Part | None
    stage: Stage
    did: str | None
    samples: Sequence[str]
    attempt: int
    target: float
    level: float
    left: float
    labels: int
    chance: float
    chance_unsure: float | None
    recall: float | None
    offers: Sequence[Offer]
    cuts: Sequence[float]
    flag_when: FlagWhen
    seed: int
    fresh: str | None
    drawn: int
    labelled: int
    outcome: Outcome | None
    overturned: Overturned | None
    saved: bool


@dataclass(frozen=True, slots=True)
class NoPlanDocument:
    """Why there is no plan, and how many more flagged labels would allow one."""

    detector: str
    segment: Part | None
    why: str
    needed: int | None
    offers: Sequence[Offer]
    overturned: Overturned | None
    stage: None = None


def run(args: Namespace) -> Answer:
    registry.get(args.detector)
    store = open_store(args)
    part = _part_of(store, args)
    go_on = certify_command(args.detector, part)
    status = attempts.latest_status(store, args.detector, part=part)
    if args.save and (status is None or status.stage not in ("labelled", "certified")):
        stands = sentences.status(status) if status else "no attempt was planned yet."
        raise BadInput(f"nothing is certified that could be saved: {stands} `{go_on}` goes on")
    offers: tuple[Offer, ...] = ()
    behind_plan: list[str] = []
    lost = status.overturned if status else None
    if status is None or (not args.save and _may_try_again(status)) or _asks_other_plan(store, args, status):
        data, target = _labels_of_plan(store, args, status, part)
        if data.waiting and len(data.rows) < AT_LEAST:
            raise BadInput(f"{args.detector}: {too_few_count(len(data.rows), data.waiting)}")
        planned = planning.plan(store, data, target=target, budget=args.labels, seed=args.seed, by=user(), now=now())
        offers = planning.offers(store, data, target=target, seed=args.seed)
        behind_plan = labels_lines(labels_at_hand(store, data.sample))
        if isinstance(planned, NotCertifiable):
            document = NoPlanDocument(args.detector, part, sentences.no_plan(planned), planned.needed, offers, lost)
            lines = [
                *_lost_lines(lost),
                f"no plan{sentences.in_part(part)}: {document.why}",
                *behind_plan,
                *_offer_lines(offers),
            ]
            return Answer(document, "\n".join(lines), exit_code=2)
        offers = planning.beside(offers, planned.plan, step.available(store, planned))
        status, did = attempts.status_of(store, planned), "planned"
    elif status.stage == "planned":
        status, did = attempts.status_of(store, step.draw(store, status.attempt, fewer=args.fewer, now=now())), "drawn"
    elif status.stage == "labelled":
        status, did = attempts.status_of(store, step.finish(store, status.attempt, now=now())), "tested"
    else:
        did = None
    save = args.save and status.stage == "certified"
    if save:
        step.save(store, status.attempt, reason=args.reason, by=user(), now=now())
    lines = [
        *([] if status.overturned else _lost_lines(lost)),
        sentences.status(status),
        *behind_plan,
        *_offer_lines(offers),
        _saved_line(status) if save else _next_line(store, status),
    ]
    if args.save and not save:
        lines.append("not saved: nothing is certified yet")
    return Answer(
        _document(status, did, offers, lost, saved=save), "\n".join(lines), exit_code=2 if args.save and not save else 0
    )


def _part_of(store: Store, args: Namespace) -> Part | None:
    """The segment that is named. Raises BadInput where only half of its name is given."""
    if args.by is None and args.segment is None:
        return None
    if not args.by or not args.segment:
        lacks = "--segment NAME" if args.by else "--by operation, --by model, --by language or --by attributes.NAME"
        raise BadInput(f"a segment is named by --by and --segment together: add {lacks}")
    return Part(full_name(store, args.by), args.segment)


def _may_try_again(status: CertificationStatus) -> bool:
    """Whether the newest attempt failed where another may do, or its certificate no longer holds."""
    failed = status.outcome is not None and status.outcome.needed is not None
    return failed or status.overturned is not None


def _asks_other_plan(store: Store, args: Namespace, status: CertificationStatus) -> bool:
    """Whether the options ask for another plan than the newest: the same command again goes on with it."""
    config = (
        configurations.resolve_config(store, args.detector, parse_pairs(args.param, "--param")) if args.param else None
    )
    terms = (
        (tuple(args.sample) if args.sample else None, status.terms.samples),
        (args.target, status.plan.target),
        (args.labels, status.terms.budget),
        (args.seed, status.terms.seed),
        (config and config.id, status.attempt.config_id),
    )
    return any(option is not None and option != standing for option, standing in terms)


def _labels_of_plan(
    store: Store, args: Namespace, status: CertificationStatus | None, part: Part | None
) -> tuple[Evidence, float]:
    """The labels named, else those of the attempt before, and the precision to certify."""
    names = args.sample or (status.terms.samples if status else ()) or None
    config = store.scores.get_config(status.attempt.config_id) if status and not args.param else None
    data = loading.load_evidence(
        store, args.detector, sample=names, params=parse_pairs(args.param, "--param"), config=config
    )
    data = data if part is None else in_segment(store, data, part)
    usual = status.plan.target if status else planning.TARGET
    return data, usual if args.target is None else args.target


def _next_line(store: Store, status: CertificationStatus) -> str:
    name = attempts.command(status.attempt)
    if status.stage == "planned":
        available = step.available(store, status.attempt)
        return f"next: {_drawing_line(name, status.attempt.detector, status.plan, available)}"
    if status.stage == "drawn" and status.fresh:
        return f"next: label the sample {status.fresh.name} (the Label page, or `labels import`), then `{name}`"
    if status.stage == "labelled":
        return f"next: `{name}` tests the cuts on these labels, once"
    if status.stage == "certified":
        return f"next: `{name} --save` keeps it as the operating point"
    if status.outcome and status.outcome.needed:
        return f"next: `{name}` plans another attempt on all labels so far"
    return "next: label a new sample of more traffic, lower --target, or keep the detector in tier signal"


def _drawing_line(name: str, detector: str, plan: Plan, available: int) -> str:
    """Say how a plan goes on with the flagged traces that are available."""
    fresh = numbers.count(available, "flagged trace") + " to draw from"
    if available >= plan.labels:
        return f"`{name}` draws them; there are {fresh}"
    more = f"score what came in since (`{registry.how_to_score(detector)}`), or wait: there are {fresh}"
    if available < (least := step.least(plan)):
        return f"{more}, and fewer than {least} certify nothing"
    return f"{more}; or `{name} --fewer` draws these, less likely to certify, and as valid"


def _saved_line(status: CertificationStatus) -> str:
    if status.terms.part:
        return "saved as the segment's threshold; the rest keeps the common one, and `release` takes both"
    return f"saved; `release --tier {status.attempt.detector}=page` takes it into the next version"


def _lost_lines(lost: Overturned | None) -> list[str]:
    return [] if lost is None else [sentences.overturned(lost)]


def _offer_lines(offers: Sequence[Offer]) -> list[str]:
    return [f"  with {sentences.offered(offer)} (--labels {offer.labels})" for offer in offers]


def _document(
    status: CertificationStatus, did: str | None, offers: Sequence[Offer], lost: Overturned | None, *, saved: bool
) -> CertifyDocument:
    plan, terms, fresh, outcome = status.plan, status.terms, status.fresh, status.outcome
    return CertifyDocument(
        detector=status.attempt.detector, segment=terms.part, stage=status.stage, did=did,
        samples=terms.samples, attempt=plan.attempt,
        target=plan.target, level=plan.level, left=left_after(plan.attempt, plan.alpha),
        labels=plan.labels, chance=plan.chance,
        chance_unsure=plan.chance_unsure, recall=plan.recall, offers=offers, cuts=plan.cuts,
        flag_when=plan.flag_when, seed=terms.seed, fresh=fresh.name if fresh else None,
        drawn=fresh.size if fresh else 0, labelled=status.labelled,
        outcome=outcome and replace(outcome, why=sentences.why(plan, outcome)), overturned=lost,
        saved=saved,
    )  # fmt: skip
