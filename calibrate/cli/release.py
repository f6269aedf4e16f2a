"""`release`: the saved operating points become the next version."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibrate import settings
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, user
from calibrate.cli.output import table
from calibrate.cli.pairs import parse_pairs
from calibrate.cli.release_check import check
from calibrate.errors import BadInput
from calibrate.report.sentences.labelling import labels
from calibrate.report.sentences.releasing import impact as impacts
from calibrate.report.sentences.releasing import release as sentences
from calibrate.report.sentences.tuning import certification
from calibrate.settings import ReleaseSettings
from calibrate.thresholds.changes import MEASURED, Change, diff
from calibrate.thresholds.files import check_place
from calibrate.thresholds.model import ThresholdsFile
from calibrate.thresholds.signing import read_signer
from calibrate.types import Tier
from calibrate.urls import redact
from calibrate.workflow.releasing import approval, history
from calibrate.workflow.releasing import release as step
from calibrate.workflow.releasing.announce import announce, commit
from calibrate.workflow.releasing.entries import on_offer
from calibrate.workflow.releasing.impact import impact
from calibrate.workflow.releasing.labels_behind import LabelsBehind, labels_behind
from db import Store
from db.releases import Proposal, Release, ReleaseRequest

TIERS = ("page", "signal", "off")
# What else may be given beside these options; a release takes all.
GOES_WITH = {
    "check": ("note", "reason", "ensemble", "tier", "detectors"),
    "rollback": ("note", "reason", "out", "sign"),
    "again": ("out",),
    "approve": ("out", "sign"),
    "decline": (),
    "proposals": (),
}


@dataclass(frozen=True, slots=True)
class WrittenAgainDocument:
    version: int
    sha256: str
    path: str | None
    cautions: Sequence[str] = ()
    problems: Sequence[str] = ()


@dataclass(frozen=True)
class Effect:
    """What a release changes and what to know of it. `evidence_of`: the labels behind each detector's saved point."""

    sentence: str | None
    changes: Sequence[str]
    worse: Sequence[str]
    cautions: Sequence[str]
    evidence_of: Mapping[str, LabelsBehind]


@dataclass(frozen=True)
class ReleasedDocument(Effect):
    version: int
    sha256: str
    path: str | None
    problems: Sequence[str]


@dataclass(frozen=True)
class RolledBackDocument(ReleasedDocument):
    offer: Sequence[str]


@dataclass(frozen=True)
class ProposedDocument(Effect):
    proposal: int
    version: None = None


@dataclass(frozen=True, slots=True)
class WaitingDocument:
    """A proposal that waits for a second person; `stale` says why it can no longer be approved."""

    proposal: int
    by: str
    at: str
    ensembles: Sequence[str]
    note: str
    reason: str
    detectors: Sequence[str]
    tiers: Mapping[str, Tier]
    version: int
    content: str
    stale: str | None


@dataclass(frozen=True, slots=True)
class ProposalsDocument:
    proposals: Sequence[WaitingDocument]


@dataclass(frozen=True, slots=True)
class DeclinedDocument:
    proposal: int
    outcome: str | None


def run(args: Namespace) -> Answer:
    """Release, or do one of the other things that releases need."""
    _refuse_misfits(args)
    if args.check:
        return check(open_store(args), _request(args), now())
    after = settings.releases()
    special = args.proposals or any(
        number is not None for number in (args.again, args.rollback, args.approve, args.decline)
    )
    proposes = after.approval and not special
    writes = not (args.proposals or args.decline is not None or proposes)
    if writes and args.out is None and not _may_name_no_file(args, after):
        raise BadInput("name the thresholds file to write: --out FILE")
    store = open_store(args)
    out = check_place(args.out, store=store.file) if args.out else None
    if args.proposals:
        return _proposals(store)
    if args.decline is not None:
        declined = approval.decline(store, args.decline, by=user(), now=now())
        return Answer(DeclinedDocument(declined.id, declined.outcome), f"proposal {declined.id} is declined")
    if proposes:
        return _proposed(store, args)
    if args.again is not None:
        return _again(store, args.again, out, after)
    sign = read_signer(after.sign if args.sign is None else args.sign)
    if args.approve is not None:
        row = approval.approve(store, args.approve, by=user(), now=now(), out=out, sign=sign)
    elif args.rollback is not None:
        terms = {"note": args.note, "reason": args.reason.strip()}
        row = step.rollback(store, args.rollback, **terms, by=user(), now=now(), out=out, sign=sign)
    else:
        row = step.release(store, _request(args), now=now(), out=out, sign=sign)
    before = None if row.version == 1 else store.releases.get(row.version - 1)
    file = history.read_release(row)
    effect = _effect(store, history.read_release(before) if before else None, file)
    offer = [] if args.rollback is None else sentences.on_offer(args.rollback, on_offer(store, file))
    problems = [sentences.overtaken(past) for past in approval.overtaken(store, row.version)]
    problems += [sentences.unannounced(failure) for failure in announce(row, after, store)]
    place = None if out is None else redact(out)
    document = ReleasedDocument(**vars(effect), version=row.version, sha256=row.sha256, path=place, problems=problems)
    if args.rollback is not None:
        document = RolledBackDocument(**vars(document), offer=offer)
    return Answer(document, "\n".join([_written(store, row, out), *_sentences(effect), *offer, *problems]))


def _again(store: Store, version: int, out: str | None, after: ReleaseSettings) -> Answer:
    """Write a version to a file again, and to git what git lacks."""
    row = step.read_version(store, version) if out is None else step.again(store, version, out)
    judged = step.judge_again(store, row)
    cautions = sentences.known_bad_of(judged)
    newest = store.releases.list(limit=1)[0].version
    if out is not None and row.version < newest:
        cautions = [*cautions, sentences.older(row.version, newest)]
    problems = [sentences.unannounced(failure) for failure in commit(row, after, store)]
    written = f"version {row.version} is in {redact(out)}" if out else f"version {row.version} is as it was"
    lines = [f"{written} (sha256 {row.sha256[:16]}…)", *cautions, *problems]
    # Of what went out for a reason a script need not hear again.
    unexcused = any(each.state.known_bad and not each.reason for each in judged)
    document = WrittenAgainDocument(row.version, row.sha256, redact(out) if out else None, cautions, problems)
    return Answer(document, "\n".join(lines), exit_code=2 if unexcused else 0)


def _refuse_misfits(args: Namespace) -> None:
    """An option that is not read would be believed to count, and what is released stays released."""
    action = next((name for name in GOES_WITH if getattr(args, name) not in (None, False)), None)
    if action is None:
        return
    options = {name: f"--{name}" for name in ("note", "reason", "out", "sign", "ensemble", "tier")}
    wrong = [option for name, option in options.items() if getattr(args, name) and name not in GOES_WITH[action]]
    wrong += [f"the detector {name}" for name in args.detectors if "detectors" not in GOES_WITH[action]]
    if wrong:
        allowed = ", ".join(options.get(name, "names of detectors") for name in GOES_WITH[action]) or "nothing"
        raise BadInput(f"--{action} does not go with {', '.join(wrong)}; it goes with {allowed}")


def _request(args: Namespace) -> ReleaseRequest:
    tiers: dict[str, Any] = parse_pairs(args.tier, "--tier")
    for name, tier in tiers.items():
        if tier not in TIERS:
            raise BadInput(f"--tier {name}={tier}: a tier is one of {', '.join(TIERS)}")
    return ReleaseRequest(
        detectors=args.detectors or None,
        ensembles=args.ensemble,
        tiers=tiers,
        note=args.note,
        reason=args.reason.strip(),
        by=user(),
    )


def _figure(change: Change) -> str:
    """A figure of a segment counts as that figure; a threshold of a segment is told on its own."""
    name, of_segment, _ = change.field.partition(" (")
    return change.field if of_segment and name == "threshold" else name


def _may_name_no_file(args: Namespace, after: ReleaseSettings) -> bool:
    """A release names a file, so that nobody forgets it. What is urgent does not ask: a file can be written later."""
    return args.approve is not None or args.rollback is not None or (args.again is not None and bool(after.git))


def _effect(store: Store, before: ThresholdsFile | None, after: ThresholdsFile) -> Effect:
    against = impact(store, before, after) if before else None
    rows, missing, worse = (against.rows, against.missing, against.worse) if against else ((), (), ())
    moved = [impacts.detector(row) for row in rows if row.check or None in (row.before, row.after)]
    measured = {"threshold", "detector", *MEASURED, "coverage"}
    behind = _labels_behind(store, after)
    rest = [str(change) for change in diff(before, after) if against is None or _figure(change) not in measured]
    return Effect(
        sentence=impacts.summary(against) if against else None,
        changes=[*moved, *rest],
        worse=[impacts.worse(check) for check in worse],
        cautions=[
            *(impacts.missing(check) for check in missing),
            *sentences.cautions(after),
            *labels.behind(behind),
            *(certification.overturned(change) for change in step.stale_certificates(store, after)),
        ],
        evidence_of=behind,
    )


def _labels_behind(store: Store, file: ThresholdsFile) -> dict[str, LabelsBehind]:
    """By detector, the labels of its saved point as they stand now."""
    points = store.points.latest()
    behind = {name: labels_behind(store, points[name]) for name in sorted(file.detectors) if name in points}
    return {name: each for name, each in behind.items() if each}


def _sentences(effect: Effect) -> list[str]:
    return [*filter(None, [effect.sentence, *effect.changes, *effect.worse, *effect.cautions])]


def _written(store: Store, row: Release, out: str | None) -> str:
    """Say where a release is. The file holds the newest one, whoever made it."""
    digest = f"(sha256 {row.sha256[:16]}…)"
    if out is None:
        return f"version {row.version} is released {digest}; `release --again {row.version} --out FILE` writes a file"
    newest = store.releases.list(limit=1)[0].version
    if newest != row.version:
        return f"version {row.version} is released {digest}; {redact(out)} holds version {newest}, released since"
    return f"version {row.version} is in {redact(out)} {digest}"


def _proposed(store: Store, args: Namespace) -> Answer:
    proposal = approval.propose(store, _request(args), now=now())
    effect = _effect(store, history.live_release(store), approval.preview(store, proposal, now()))
    out = redact(args.out) if args.out else ""
    line = (
        f"proposal {proposal.id} waits for a second person: `release --approve {proposal.id}"
        f"{f' --out {out}' if out else ''}` releases it as v{proposal.expected}, "
        f"`release --decline {proposal.id}` does not"
    )
    if args.out:
        effect = replace(effect, cautions=[*effect.cautions, f"{out} is not written yet: approving writes it"])
    document = ProposedDocument(**vars(effect), proposal=proposal.id)
    return Answer(document, "\n".join([line, *_sentences(effect)]))


def _proposals(store: Store) -> Answer:
    waiting = [_waiting(proposal, approval.outlived(store, proposal, now())) for proposal in approval.waiting(store)]
    document = ProposalsDocument(waiting)
    if not waiting:
        return Answer(document, "no release waits for a second person")
    rows = [["id", "proposed by", "at", "version", "detectors", "note"]]
    for row in waiting:
        version = f"v{row.version}{', stale' if row.stale else ''}"
        rows.append([str(row.proposal), row.by, row.at, version, ", ".join(row.detectors), row.note])
    hints = [f"`release --decline {row.proposal}`: {row.stale}" for row in waiting if row.stale]
    return Answer(document, "\n".join([table(rows), *hints]))


def _waiting(proposal: Proposal, stale: str | None) -> WaitingDocument:
    request = proposal.request
    return WaitingDocument(
        proposal=proposal.id,
        by=proposal.proposed_by,
        at=proposal.proposed_at.isoformat(timespec="seconds"),
        ensembles=tuple(request.ensembles),
        note=request.note,
        reason=request.reason,
        detectors=tuple(request.detectors or ()),
        tiers=request.tiers,
        version=proposal.expected,
        content=proposal.content,
        stale=stale,
    )
