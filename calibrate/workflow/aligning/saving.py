"""Save a proposed prompt: it is the judge's from now on, and the labels it was made from leave calibration for good.

Only a prompt that was shown to judge better than the one in use is saved without a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from calibrate.errors import BadInput
from calibrate.stats.aligning.gain import Gained
from calibrate.workflow.aligning.comparison import Compared, newest_comparison, read_comparison
from calibrate.workflow.aligning.proposal import Proposal
from calibrate.workflow.detection import team_files
from db import Store


@dataclass(frozen=True)
class Standing:
    """What is known of a proposed prompt.

    `compared` is its newest comparison with the prompt in use, None where there is none. `in_use`: it is the judge's
    already. `last` is what was compared last on the judge, of whatever prompt; `answered`: that one, with as many
    examples and the same guide, is in use, so that nothing is left to save of it.
    """

    in_use: bool
    compared: Compared | None
    last: Compared | None
    answered: bool

    @property
    def gains(self) -> bool:
        """Whether it was shown to judge better than the prompt in use."""
        return self.compared is not None and self.compared.gain.verdict is Gained.BETTER


def find_standing(store: Store, proposal: Proposal) -> Standing:
    """Look up what is known of a proposed prompt beside the one in use now."""
    current = team_files.get(store, proposal.file).version
    stored = newest_comparison(store, proposal.detector, after=proposal.after, before=current)
    newest = newest_comparison(store, proposal.detector)
    last = None if newest is None else read_comparison(newest)
    answered = last is not None and (last.after, last.examples, last.guide) == (
        current, len(proposal.examples), proposal.guide.version,
    )  # fmt: skip
    compared = None if stored is None else read_comparison(stored)
    return Standing(proposal.after == current, compared, last, answered)


def save(store: Store, proposal: Proposal, *, reason: str = "", by: str, now: datetime) -> bool:
    """Save the prompt as the team's version, and set its labels aside. Returns False if it is in use already.

    Labels are set aside first: a prompt that quotes them never counts beside them. The reason is kept with the version.
    Raises BadInput for a text that cannot be a prompt, and for one that is not shown to gain, without a `reason`.
    """
    team_files.check(store, proposal.file, proposal.text)
    standing = find_standing(store, proposal)
    if standing.in_use:
        return False
    if not standing.gains and not reason.strip():
        raise BadInput(
            f"the prompt {proposal.after} is not shown to judge better than the one in use, so nothing was saved: "
            f"compare it (`align compare {proposal.detector}`), or say why it shall be saved all the same "
            "(`--reason TEXT`)"
        )
    quoted = {example.pk for example in proposal.examples}
    if proposal.pool:
        keys = {pk: pk in quoted for pk in proposal.pool}
        guide = proposal.guide.version
        store.prompt_examples.save(proposal.file, proposal.after, keys, guide=guide, by=by, now=now)
    return team_files.save(store, proposal.file, proposal.text, reason=reason, by=by, now=now)
