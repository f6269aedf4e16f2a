"""Verbs about the thresholds file."""

from __future__ import annotations

from argparse import Namespace
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


def run(args: Namespace) -> Answer:
    """Releases; or does one of the other things that releases need."""
    from calibrate.workflow.releasing import approval, history
    from calibrate.workflow.releasing import release as step
    from calibrate.workflow.releasing.entries import on_offer

    _refuse_misfits(args)
    after = settings.releases()
    other = args.proposals or any(one is not None for one in (args.again, args.rollback, args.approve, args.decline))
    proposes = after.approval and not other
    out = None if args.proposals or args.decline is not None or proposes else _out(args.out)
    found = open_store(args)
    if args.proposals:
        return _proposals(found)
    if args.decline is not None:
        one = approval.decline(found, args.decline, by=user(), now=now())
        return Answer({"proposal": one.id, "outcome": one.outcome}, f"proposal {one.id} is declined")
    if proposes:
        return _proposed(found, args)
    assert out is not None
    if args.again is not None:
        return _released(step.again(found, args.again, out), out, {}, [])
    if args.approve is not None:
        row = approval.approve(found, args.approve, by=user(), now=now(), out=out)
    elif args.rollback is not None:
        told = {"note": args.note, "reason": args.reason.strip()}
        row = step.rollback(found, args.rollback, **told, by=user(), now=now(), out=out)
    else:
        row = step.release(found, _request(args), now=now(), out=out)
    before = None if row.version == 1 else found.releases.get(row.version - 1)
    about = _about(found, history.read_release(before) if before else None, history.read_release(row))
    if args.rollback is not None:
        about["offer"] = sentences.on_offer(args.rollback, on_offer(found, history.read_release(row)))
    return _released(row, out, about, [sentences.unannounced(failure) for failure in announce(row, after)])


def _refuse_misfits(args: Namespace) -> None:
    """An option that is not read would be believed to count, and what is released stays released."""
    act = next((one for one in GOES_WITH if getattr(args, one) not in (None, False)), None)
    if act is None:
        return
    given = {"note": "--note", "reason": "--reason", "out": "--out", "ensemble": "--ensemble", "tier": "--tier"}
    wrong = [option for name, option in given.items() if getattr(args, name) and name not in GOES_WITH[act]]
    wrong += [f"the detector {name}" for name in args.detectors]
    if wrong:
        known = ", ".join(given[name] for name in GOES_WITH[act]) or "nothing"
        raise BadInput(f"what does not go with --{act}: {', '.join(wrong)}; what does: {known}")


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


def _out(given: str | None) -> str:
    """Where the file goes. Raises BadInput for a place where none can."""
    if given is None:
        raise BadInput("name the thresholds file to write: --out FILE")
    return given if scheme_of(given) else str(output_path(given, replace=True))


def _about(found: Store, before: ThresholdsFile | None, after: ThresholdsFile) -> dict[str, Any]:
    """What a release changes and what to know of it."""
    from calibrate.workflow.releasing import impact
    from calibrate.workflow.releasing import release as step

    seen = impact.impact(found, before, after) if before else None
    moved = [impacts.detector(row) for row in seen.rows if row.check or None in (row.before, row.after)] if seen else []
    redact_url = {"threshold", "detector", *MEASURED, "coverage"}
    rest = [str(one) for one in diff(before, after) if seen is None or one.field not in redact_url]
    return {
        "sentence": impacts.summary(seen) if seen else None,
        "changes": [*moved, *rest],
        "worse": [impacts.worse(check) for check in seen.worse] if seen else [],
        "cautions": [
            *(impacts.missing(check) for check in (seen.missing if seen else ())),
            *sentences.cautions(after),
            *(sentences.overturned(change) for change in step.stale_certificates(found, after)),
        ],
    }


def _told(about: dict[str, Any]) -> list[str]:
    said = [about["sentence"], *about["changes"], *about["worse"], *about["cautions"], *about.get("offer", ())]
    return [one for one in said if one]


def _released(row: Release, out: str, about: dict[str, Any], problems: list[str]) -> Answer:
    document = {"version": row.version, "sha256": row.sha256, "path": out, "cautions": [], **about}
    said = [
        f"version {row.version} is in {redact_url(out)} (sha256 {row.sha256[:16]}…)",
        *(_told(about) if about else []),
    ]
    return Answer({**document, "problems": problems}, "\n".join([*said, *problems]))


def _proposed(found: Store, args: Namespace) -> Answer:
    from calibrate.workflow.releasing import approval, history

    one = approval.propose(found, _request(args), now=now())
    about = _about(found, history.live_release(found), approval.preview(found, one, now()))
    out = redact_url(args.out) if args.out else "FILE"
    said = (
        f"proposal {one.id} waits for a second person: `release --approve {one.id} --out {out}` releases it as "
        f"v{one.expected}, `release --decline {one.id}` does not"
    )
    if args.out:
        about["cautions"].append(f"{out} is not written yet: approving writes it")
    return Answer({"proposal": one.id, "version": None, **about}, "\n".join([said, *_told(about)]))


def _proposals(found: Store) -> Answer:
    from calibrate.workflow.releasing import approval

    waiting = [(one, approval.outlived(found, one, now())) for one in approval.waiting(found)]
    if not waiting:
        return Answer({"proposals": []}, "no release waits for a second person")
    rows = [["id", "proposed by", "at", "version", "detectors", "note"]]
    for one, stale in waiting:
        version, names = f"v{one.expected}{', stale' if stale else ''}", ", ".join(one.request.detectors or ())
        at = one.proposed_at.isoformat(timespec="seconds")
        rows.append([str(one.id), one.proposed_by, at, version, names, one.request.note])
    hints = [f"`release --decline {one.id}`: {stale}" for one, stale in waiting if stale]
    documents = [_document(one, stale) for one, stale in waiting]
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
