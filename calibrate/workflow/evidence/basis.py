"""What figures stand on: a sample, several merged, or every label; and whether that describes the traffic.

Labels describe the traffic if it is known how their traces were chosen: by a draw that gave every trace a chance, or
not at all, as every trace has a verdict. Others can be read and detectors compared on them, with a caution beside the
figure; no threshold is chosen on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from calibrate.errors import BadInput
from calibrate.stats.sampling.designs import FEEDBACK, FLAGGED_ONLY, UNKNOWN, speaks_for_all
from calibrate.types import Sample, TraceFilter
from calibrate.workflow.detection.detect import no_sample
from calibrate.workflow.evidence import merging
from calibrate.workflow.evidence.counted_labels import NOBODY, count_labels
from calibrate.workflow.evidence.likeness import Doubt, find_doubt
from calibrate.workflow.traces.stated_samples import is_hand_picked
from db import Store


class Chosen(StrEnum):
    """How the traces came to be labelled that do not describe the traffic."""

    UNSTATED = "unstated"  # nobody said how
    FLAGGED = "flagged"  # only what a threshold flags
    FEEDBACK = "feedback"  # what people complained of, or picked
    UNLIKE = "unlike"  # they are said to be random, and their scores are not like the traffic's


@dataclass(frozen=True)
class Caution:
    """Labels that do not describe the traffic: how they were chosen, and of which sample they are (None: of several, or
    of none). `doubt`: what speaks against what is said of them."""

    chosen: Chosen
    sample: str | None = None
    doubt: Doubt | None = None


@dataclass(frozen=True)
class Basis:
    """What figures stand on: a sample, which may be several merged, or (None) every label. `caution` says why that does
    not describe the traffic; None where it does."""

    sample: Sample | None
    caution: Caution | None = None

    @property
    def drawn(self) -> Sample | None:
        """The sample by whose design labels are weighted; None where they are taken as they are."""
        return None if self.caution else self.sample


EVERY_LABEL = Basis(None, Caution(Chosen.UNSTATED))
"""Every label, whatever is known of how it was chosen: to read, not to describe the traffic."""


def choose_basis(store: Store, name: str | Sequence[str] | None) -> Basis:
    """The basis of the sample of this name, or of several merged.

    Without a name: every label, if every trace of the store has a verdict and nobody said that some were chosen; else
    all samples that describe the traffic and have labels that count, merged; else every label, with a caution. Raises
    BadInput for an unknown name and for samples that cannot be merged.
    """
    sample = resolve_sample(store, name)
    if sample is not None:
        parts = (caution_of_sample(store, part) for part in sample.parts or (sample,))
        return Basis(sample, next(filter(None, parts), None))
    if is_census(store) or not store.labels.gold_counts():
        return Basis(None)
    samples = samples_with_labels(store)
    if not samples:
        return Basis(None, _stated_caution(store) or EVERY_LABEL.caution)
    return Basis(merging.merge_samples(samples) if len(samples) > 1 else samples[0])


def basis_of_saved(store: Store, samples: Sequence[str]) -> Basis:
    """The basis of what was chosen on these samples; without any, on every label, as every trace had one then."""
    return choose_basis(store, samples) if samples else Basis(None)


def resolve_sample(store: Store, name: str | Sequence[str] | None) -> Sample | None:
    """Return the sample of this name, or several merged; None where none is named. Raises BadInput for an unknown name
    and for samples that cannot be merged.
    """
    names = [name] if isinstance(name, str) else list(dict.fromkeys(name or ()))
    samples = []
    for each in names:
        sample = store.samples.get(each)
        if sample is None:
            raise no_sample(store, each)
        samples.append(sample)
    return merging.merge_samples(samples) if len(samples) > 1 else next(iter(samples), None)


def is_census(store: Store) -> bool:
    """Whether every trace has a verdict, and none of them is there because it was flagged or complained of. What is on
    a list that somebody picked is in the store for other reasons."""
    traces = store.traces.count(TraceFilter())
    if not traces or sum(store.labels.gold_counts().values()) < traces:
        return False
    samples = (sample for sample in store.samples.list() if not is_hand_picked(sample))
    return all(sample.design not in (FLAGGED_ONLY, FEEDBACK, UNKNOWN) for sample in samples)


def samples_with_labels(store: Store) -> list[Sample]:
    """The samples that describe the traffic and have labels that count, newest first."""
    samples = (sample for sample in store.samples.list() if speaks_for_all(sample))
    labelled = (sample for sample in samples if count_labels(store, NOBODY, sample).rows)
    return [sample for sample in labelled if find_doubt(store, sample) is None]


def must_describe_traffic(caution: Caution | None) -> None:
    """Raises BadInput, with the remedy, for labels that do not."""
    if caution is None:
        return
    if caution.chosen == Chosen.UNLIKE:
        raise BadInput(
            f"the sample {caution.sample!r} is said to be random, and its scores are not like the traffic's, so it "
            "chooses no threshold: say how its traces were chosen (`sample NAME --state flagged|feedback|unknown`), or "
            "draw a sample"
        )
    if caution.chosen == Chosen.UNSTATED and caution.sample is not None:
        raise BadInput(
            f"nobody says how the traces of the sample {caution.sample!r} were chosen, so they describe no traffic and "
            "choose no threshold: say it (`sample NAME --state random|flagged|feedback`), or draw a sample"
        )
    if caution.chosen == Chosen.UNSTATED:
        raise BadInput(
            "nobody has said how the traces with labels were chosen, so they describe no traffic and choose no "
            "threshold: draw a sample (`sample`, or the Draw page) and label it in its order, or say how they were "
            "chosen (`labels import FILE --design random|flagged|feedback`)"
        )
    if caution.sample is None:
        raise BadInput(
            "the traces with labels are "
            + ("flagged ones only" if caution.chosen == Chosen.FLAGGED else "what people complained of or picked")
            + ", so they say nothing of what was missed and choose no threshold: take a sample of the whole traffic"
        )
    raise BadInput(
        f"the sample {caution.sample!r} holds "
        + ("flagged traces only" if caution.chosen == Chosen.FLAGGED else "traces that people complained of or picked")
        + ", so it says nothing of what was missed and chooses no threshold: take a sample of the whole traffic"
    )


def caution_of_sample(store: Store, sample: Sample) -> Caution | None:
    """Why the labels of a stored sample do not describe the traffic; None where they do."""
    if (caution := caution_of_design(sample)) is not None:
        return caution
    doubt = find_doubt(store, sample)
    return Caution(Chosen.UNLIKE, sample.name, doubt) if doubt else None


def caution_of_design(sample: Sample) -> Caution | None:
    """Why a sample was not drawn at random from what it stands for; None where it was, or is said to be."""
    if sample.design == UNKNOWN:
        return Caution(Chosen.UNSTATED, sample.name)
    if sample.design in (FLAGGED_ONLY, "fresh-flagged"):
        return Caution(Chosen.FLAGGED, sample.name)
    if sample.design == FEEDBACK:
        return Caution(Chosen.FEEDBACK, sample.name)
    return None


def _stated_caution(store: Store) -> Caution | None:
    """What was stated of all labels outside the samples that describe the traffic; None where of some nothing was."""
    described, stated = set[int](), dict[str, set[int]]()
    for sample in store.samples.list():
        members = {member.trace_pk for member in store.samples.members(sample.id)}
        if speaks_for_all(sample):
            described |= members
        elif sample.design in (FLAGGED_ONLY, FEEDBACK):
            stated[sample.name] = members
    rows = (counted := count_labels(store, NOBODY, None)).rows + counted.undecided
    outside = {row.pk for row in rows} - described
    if not outside or not outside <= set[int]().union(*stated.values()):
        return None
    named = (store.samples.get(name) for name in stated if outside & stated[name])
    of = [caution_of_sample(store, each) for each in named if each]
    if len(of) == 1:
        return of[0]
    flagged = all(each and each.chosen == Chosen.FLAGGED for each in of)
    return Caution(Chosen.FLAGGED if flagged else Chosen.FEEDBACK)
