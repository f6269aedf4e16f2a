"""The labels at hand: which sample a session looks at, and how far its labels are. One answer for bar and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from calibrate.stats.labels.agreement import ENRICHED
from calibrate.stats.sampling.designs import FEEDBACK, FLAGGED_ONLY, UNKNOWN, speaks_for_all
from calibrate.stats.sweep.sweep import RANKABLE
from calibrate.types import Sample
from calibrate.workflow.evidence import basis
from calibrate.workflow.evidence import labels_at_hand as step
from calibrate.workflow.evidence.counted_labels import NOBODY, count_labels
from db import Store
from pages.shell.cache import cached_read
from pages.shell.identity import person

EVERYTHING = "All labelled traces"
TOGETHER = "All samples together"
SAMPLE = "sample_at_hand"  # in the session
_USUAL = "sample_by_default"  # in the session: what a page took where nothing was chosen
DRAWN = frozenset({"label", "sample", "detect", "detectors"})  # the pages that work on one sample that was drawn


@dataclass(frozen=True, slots=True)
class Choice:
    """What can be chosen, each with its sample if it is one, and what is."""

    samples: dict[str, Sample]
    names: list[str]
    name: str

    @property
    def sample(self) -> Sample | None:
        return self.samples.get(self.name)


def choice(store: Store) -> Choice:
    """The labels that the address names; else those that the session looked at last; else the usual ones."""
    samples = {sample.name: sample for sample in _open_samples(store) if is_offered(sample)}
    labelled, census = _labelled(store)
    names = offered_labels(list(samples), labelled, census=census)
    requested = (st.query_params.get("sample"), st.session_state.get(SAMPLE))
    name = next((name for name in requested if name in names), None)
    if name is None:
        telling = not labelled or tells(store, labelled[0])
        name = usual_labels(labelled, telling=telling or TOGETHER not in names)
    return Choice(samples, names, name)


def _open_samples(store: Store) -> list[Sample]:
    """Every sample that this person may work on: what a recheck has drawn is flagged, which not all may know."""
    samples = store.samples.list()
    if not person().is_blind:
        return samples
    flagged = {each.sample_id for each in store.rechecks.of()}
    return [sample for sample in samples if sample.id not in flagged]


def drawn_choice(store: Store) -> Choice:
    """The sample that the address names; else the one that the session looked at last; else the newest in which a
    trace has no verdict yet, of anybody. The name is empty where nothing is drawn yet."""
    samples = {sample.name: sample for sample in _open_samples(store)}
    requested = (st.query_params.get("sample"), st.session_state.get(SAMPLE))
    name = next((name for name in requested if name in samples), None)
    if name is None:
        unfinished = (
            name for name, sample in samples.items() if sum(store.labels.gold_counts(sample.id).values()) < sample.size
        )
        name = next(unfinished, next(iter(samples), ""))
    return Choice(samples, list(samples), name)


def agreement_choice(store: Store) -> Choice:
    """The samples that have labels; unless one is named, the newest that was drawn for labelling by two, else every
    label."""
    samples = {sample.name: sample for sample in store.samples.list() if store.labels.gold_counts(sample.id)}
    requested = (st.query_params.get("sample"), st.session_state.get(SAMPLE))
    name = next((name for name in requested if name in (*samples, EVERYTHING)), None)
    if name is None:
        twice = (n for n, sample in samples.items() if sample.design == ENRICHED and store.labels.readings(sample.id))
        name = next(twice, EVERYTHING)
    return Choice(samples, [*samples, EVERYTHING], name)


def choice_on(store: Store, page: str | None) -> Choice:
    """What the bar offers on the page with this key, and what is chosen there."""
    if page == "agreement":
        return agreement_choice(store)
    return drawn_choice(store) if page in DRAWN else choice(store)


def labels(store: Store) -> Sample | None:
    """The sample whose labels a page stands on, kept in the address; None for what the store's labels give without a
    name: every label, or all samples together, each weighted by its own design (workflow.evidence.basis). Imported
    samples of flagged traces or of feedback can be chosen, too: they are read with a caution."""
    return _with_address(choice(store))


def labelled_by_several(store: Store) -> Sample | None:
    """The sample whose labellers a page compares, kept in the address; None for every label."""
    return _with_address(agreement_choice(store))


def drawn(store: Store) -> Sample | None:
    """The sample that a page works on, kept in the address; None if none is drawn yet."""
    return _with_address(drawn_choice(store))


def choose(name: str) -> None:
    """Take a sample into the hand, for this page and the next."""
    st.session_state[SAMPLE] = st.query_params["sample"] = name


def _with_address(chosen: Choice) -> Sample | None:
    """Write the choice into the address. What was only the usual one does not stay at hand on the next page."""
    in_address = st.query_params.get("sample")
    if chosen.name and in_address != chosen.name:
        st.query_params["sample"] = st.session_state[_USUAL] = chosen.name
    elif in_address and in_address != st.session_state.get(_USUAL):
        st.session_state[SAMPLE] = in_address
    return chosen.sample


@cached_read(None, "traces", "samples", "labels", entries=100)
def labels_of(store: Store, names: tuple[str, ...]) -> step.LabelsAtHand:
    """The labels of these samples together, or all; counted once for all sessions."""
    return step.labels_at_hand(store, basis.resolve_sample(store, names))


@cached_read(None, "traces", "samples", "labels")
def _labelled(store: Store) -> tuple[list[str], bool]:
    """The samples that have labels, newest first, and whether every trace has one."""
    return [sample.name for sample in basis.samples_with_labels(store)], basis.is_census(store)


@cached_read(None, "traces", "samples", "labels")
def tells(store: Store, name: str) -> bool:
    """Whether enough of a sample's labels that count are hallucinated to choose on them."""
    counted = count_labels(store, NOBODY, store.samples.get(name)).rows
    return sum(row.gold == "hallucinated" for row in counted) >= RANKABLE


def offered_labels(samples: Sequence[str], labelled: Sequence[str], *, census: bool) -> list[str]:
    """Every sample, newest first, and what no name stands for: all samples together if two have labels that count,
    every label if every trace has one or no sample does."""
    if census or not labelled:
        return [*samples, EVERYTHING]
    return [*samples, *([TOGETHER] if len(labelled) > 1 else [])]


def usual_labels(labelled: Sequence[str], *, telling: bool = True) -> str:
    """The newest sample that has labels: one that nobody has labelled yet teaches nothing. Until its labels are
    `telling`, all samples together."""
    return next(iter(labelled), EVERYTHING) if telling else TOGETHER


def is_offered(sample: Sample) -> bool:
    """Whether a page may stand on its labels; imported ones are read with a caution."""
    return speaks_for_all(sample) or sample.design in (FLAGGED_ONLY, FEEDBACK, UNKNOWN)
