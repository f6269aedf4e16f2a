"""Save a proposed prompt: it is the judge's from now on, and the labels it was made from leave calibration for good."""

from __future__ import annotations

from datetime import datetime

from calibrate.workflow.aligning.proposal import Proposal
from calibrate.workflow.detection import team_files
from db import Store


def save(store: Store, proposal: Proposal, *, by: str, now: datetime) -> bool:
    """Save the prompt as the team's version, and set its labels aside. Returns False if it is in use already.

    Labels are set aside first: a prompt that quotes them never counts beside them. Raises BadInput for a text that
    cannot be a prompt.
    """
    team_files.check(store, proposal.file, proposal.text)
    quoted = {example.pk for example in proposal.examples}
    if proposal.pool:
        keys = {pk: pk in quoted for pk in proposal.pool}
        guide = proposal.guide.version
        store.prompt_examples.save(proposal.file, proposal.after, keys, guide=guide, by=by, now=now)
    return team_files.save(store, proposal.file, proposal.text, by=by, now=now)
