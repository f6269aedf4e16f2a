"""What a release does, what to know before it, and what is on offer after one came back, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from calibrate.report.names import title_of
from calibrate.report.sentences.tuning import point_state
from calibrate.sanitize import visible
from calibrate.thresholds.model import ThresholdsFile
from calibrate.thresholds.states import Judged, states_in
from calibrate.types import Strength, Tier
from calibrate.workflow.releasing.announce import Unannounced
from calibrate.workflow.releasing.approval import Overtaken
from calibrate.workflow.releasing.entries import OnOffer


def on_offer(version: int, offer: OnOffer) -> list[str]:
    """Say whether the next release would start from what `version` held, now that it is live again."""
    return list(_on_offer(version, offer))


def _on_offer(version: int, offer: OnOffer) -> Iterator[str]:
    if offer.newer:
        yield (
            f"{', '.join(map(title_of, offer.newer))}: what is saved is newer than the live release, whose own is no "
            "longer in the store; the next release would bring it, unless another is chosen and saved"
        )
    else:
        saved = "points and ensembles" if offer.file.ensembles else "points"
        yield f"v{version}'s {saved} are on offer again: the next release starts from them"
    if offer.added:
        names = ", ".join(map(title_of, offer.added))
        yield f"v{version} has no {names}, on offer with a saved point: leave out what shall not come back"


def cautions(file: ThresholdsFile) -> list[str]:
    """Say what in a release is known to be bad, and what would page people without a certified precision."""
    return list(_cautions(file))


def _cautions(file: ThresholdsFile) -> Iterator[str]:
    yield from known_bad_in(file)
    for name, entry in sorted(file.detectors.items()):
        if text := caution(name, entry.tier, entry.strength):
            yield text
    for name, ensemble in sorted(file.ensembles.items()):
        if ensemble.cuts.page is not None:
            yield (
                f"the ensemble {name} pages people, and its precision is bounded, not certified: release it as signal "
                f"(`--tier {name}=signal`), or watch what it flags"
            )


def known_bad_in(file: ThresholdsFile) -> list[str]:
    """Say what in a release is known to be bad, and why it is out all the same."""
    return known_bad_of(states_in(file))


def known_bad_of(judged: Iterable[Judged]) -> list[str]:
    """Say which of these are known to be bad, and why they are out all the same."""
    return [point_state.against(each.name, each.state, each.reason) for each in judged if each.state.known_bad]


def caution(name: str, tier: Tier, strength: Strength) -> str | None:
    """Say what to know before a detector goes into a tier; None where there is nothing."""
    if tier != "page" or strength == "certified":
        return None
    return (
        f"{title_of(name)} pages people, and its precision is {strength}, not certified: certify it first "
        f"(`certify {name}`, or the Tune page), or release it as signal"
    )


def older(version: int, newest: int) -> str:
    """Say that a version written again is not taken by who has seen a newer one."""
    return f"a runtime that has seen v{newest} refuses v{version}: `release --rollback {version}` makes it the newest"


def overtaken(past: Overtaken) -> str:
    """Say of a proposal that something else was released before anybody decided on it."""
    return (
        f"proposal {past.proposal} by {visible(past.by, 60)} still waited for a second person, and can no "
        f"longer be approved: decline it, or propose it anew against v{past.version}"
    )


def unannounced(failure: Unannounced) -> str:
    """Say that a release was made and could not be committed, or told to the webhook."""
    if failure.host is None:
        return f"v{failure.version} is released, but not committed: {failure.reason}"
    reason = failure.reason or "it did not answer in time"
    return f"v{failure.version} is released, but the webhook at {failure.host} was not told: {reason}"
