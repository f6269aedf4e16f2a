"""`release`: the saved operating points become the next version."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from calibrate import settings
from calibrate.cli import Answer
from calibrate.cli.common import now, open_store, output_path, parse_pairs, user
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report.sentences import impact as impacts
from calibrate.report.sentences import release as sentences
from calibrate.thresholds.changes import MEASURED, diff
from calibrate.thresholds.files import redact_url, scheme_of
from calibrate.thresholds.model import ThresholdsFile
from calibrate.workflow.releasing.announce import announce
from db import Store
from db.releases import Proposal, Release, ReleaseRequest

TIERS = ("page", "signal", "off")
# What else may be given beside these options; a release takes all.
GOES_WITH = {
    "rollback": ("note", "reason", "out"),
    "again": ("out",),
    "approve": ("out",),
    "decline": (),
    "proposals": (),
}


@dataclass(frozen=True, slots=True)
class DeclinedDocument:
    proposal: int
    outcome: str | None


def run(args: Namespace) -> Answer:
    """Release, or do one of the other things that releases need."""
    from calibrate.workflow.releasing import approval, history
    from calibrate.workflow.releasing import release as step
    from calibrate.workflow.releasing.entries import on_offer

    _refuse_misfits(args)
    after = settings.releases()
    special = args.proposals or any(
        number is not None for number in (args.again, args.rollback, args.approve, args.decline)
    )
    proposes = after.approval and not special
    out = None if args.proposals or args.decline is not None or proposes else _check_out(args.out)
    store = open_store(args)
    if args.proposals:
        return _proposals(store)
    if args.decline is not None:
        declined = approval.decline(store, args.decline, by=user(), now=now())
        return Answer(DeclinedDocument(declined.id, declined.outcome), f"proposal {declined.id} is declined")
    if proposes:
        return _proposed(store, args)
    assert out is not None
    if args.again is not None:
        return _released(step.again(store, args.again, out), out, {}, [])
    if args.approve is not None:
        row = approval.approve(store, args.approve, by=user(), now=now(), out=out)
    elif args.rollback is not None:
        terms = {"note": args.note, "reason": args.reason.strip()}
        row = step.rollback(store, args.rollback, **terms, by=user(), now=now(), out=out)
    else:
        row = step.release(store, _request(args), now=now(), out=out)
    before = None if row.version == 1 else store.releases.get(row.version - 1)
    about = _about(store, history.read_release(before) if before else None, history.read_release(row))
    if args.rollback is not None:
        about["offer"] = sentences.on_offer(args.rollback, on_offer(store, history.read_release(row)))
    return _released(row, out, about, [sentences.unannounced(failure) for failure in announce(row, after)])


def _refuse_misfits(args: Namespace) -> None:
    """An option that is not read would be believed to count, and what is released stays released."""
    action = next((name for name in GOES_WITH if getattr(args, name) not in (None, False)), None)
    if action is None:
        return
    options = {"note": "--note", "reason": "--reason", "out": "--out", "ensemble": "--ensemble", "tier": "--tier"}
    wrong = [option for name, option in options.items() if getattr(args, name) and name not in GOES_WITH[action]]
    wrong += [f"the detector {name}" for name in args.detectors]
    if wrong:
        allowed = ", ".join(options[name] for name in GOES_WITH[action]) or "nothing"
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


def _check_out(out: str | None) -> str:
    """Where the file goes. Raises BadInput for a place where none can."""
    if out is None:
        raise BadInput("name the thresholds file to write: --out FILE")
    return out if scheme_of(out) else str(output_path(out, replace=True))


def _about(store: Store, before: ThresholdsFile | None, after: ThresholdsFile) -> dict[str, Any]:
    """What a release changes and what to know of it."""
    from calibrate.workflow.releasing import impact
    from calibrate.workflow.releasing import release as step

    effect = impact.impact(store, before, after) if before else None
    moved = (
        [impacts.detector(row) for row in effect.rows if row.check or None in (row.before, row.after)] if effect else []
    )
    measured = {"threshold", "detector", *MEASURED, "coverage"}
    rest = [str(change) for change in diff(before, after) if effect is None or change.field not in measured]
    return {
        "sentence": impacts.summary(effect) if effect else None,
        "changes": [*moved, *rest],
        "worse": [impacts.worse(check) for check in effect.worse] if effect else [],
        "cautions": [
            *(impacts.missing(check) for check in (effect.missing if effect else ())),
            *sentences.cautions(after),
            *(sentences.overturned(change) for change in step.stale_certificates(store, after)),
        ],
    }


def _sentences(about: dict[str, Any]) -> list[str]:
    lines = [about["sentence"], *about["changes"], *about["worse"], *about["cautions"], *about.get("offer", ())]
    return [line for line in lines if line]


def _released(row: Release, out: str, about: dict[str, Any], problems: list[str]) -> Answer:
    document = {"version": row.version, "sha256": row.sha256, "path": out, "cautions": [], **about}
    lines = [
        f"version {row.version} is in {redact_url(out)} (sha256 {row.sha256[:16]}…)",
        *(_sentences(about) if about else []),
    ]
    return Answer({**document, "problems": problems}, "\n".join([*lines, *problems]))


def _proposed(store: Store, args: Namespace) -> Answer:
    from calibrate.workflow.releasing import approval, history

    proposal = approval.propose(store, _request(args), now=now())
    about = _about(store, history.live_release(store), approval.preview(store, proposal, now()))
    out = redact_url(args.out) if args.out else "FILE"
    line = (
        f"proposal {proposal.id} waits for a second person: `release --approve {proposal.id} --out {out}` releases it "
        f"as v{proposal.expected}, `release --decline {proposal.id}` does not"
    )
    if args.out:
        about["cautions"].append(f"{out} is not written yet: approving writes it")
    return Answer({"proposal": proposal.id, "version": None, **about}, "\n".join([line, *_sentences(about)]))


def _proposals(store: Store) -> Answer:
    from calibrate.workflow.releasing import approval

    waiting = [(proposal, approval.outlived(store, proposal, now())) for proposal in approval.waiting(store)]
    if not waiting:
        return Answer({"proposals": []}, "no release waits for a second person")
    rows = [["id", "proposed by", "at", "version", "detectors", "note"]]
    for proposal, stale in waiting:
        version, names = (
            f"v{proposal.expected}{', stale' if stale else ''}",
            ", ".join(proposal.request.detectors or ()),
        )
        at = proposal.proposed_at.isoformat(timespec="seconds")
        rows.append([str(proposal.id), proposal.proposed_by, at, version, names, proposal.request.note])
    hints = [f"`release --decline {proposal.id}`: {stale}" for proposal, stale in waiting if stale]
    documents = [_document(proposal, stale) for proposal, stale in waiting]
    return Answer({"proposals": documents}, "\n".join([table(rows), *hints]))


def _document(proposal: Proposal, stale: str | None) -> dict[str, Any]:
    request = proposal.request
    return {
        "proposal": proposal.id,
        "by": proposal.proposed_by,
        "at": proposal.proposed_at.isoformat(timespec="seconds"),
        "ensembles": list(request.ensembles),
        "note": request.note,
        "reason": request.reason,
        "detectors": list(request.detectors or ()),
        "tiers": dict(request.tiers),
        "version": proposal.expected,
        "content": proposal.content,
        "stale": stale,
    }
