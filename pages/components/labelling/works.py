"""The kinds of work that the labelling surface serves: what comes next, whose it is, and what an answer does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from calibrate.errors import BadInput
from calibrate.report.numbers import ago, count, estimate
from calibrate.report.sentences.labelling.labels import held_back
from calibrate.sanitize import visible
from calibrate.stats.sampling.designs import speaks_for_all
from calibrate.types import Label, Sample
from calibrate.workflow.evidence.label_counts import find_gap
from calibrate.workflow.labelling import assignment, repeats
from calibrate.workflow.watching import recheck
from db import Store
from db.attempts import Recheck
from db.labelling.answers import Standing
from db.labels import Place, Reading
from pages import shell
from pages.components.labelling import trace_card
from pages.shell.bar import at_hand

MOST_BEHIND = 500
MOST_TRACES = 200


@dataclass
class Work:
    """A person's work on a sample. `body` is what the browser asked with."""

    store: Store
    labeller: str
    body: Mapping[str, Any]

    def next(self, held: set[int], wanted: int) -> list[int]:
        """The keys of the traces that come next, apart from those that the browser holds."""
        if not self._split:
            place = self._place(wanted + len(held))
            front = (self.store.samples.at(self.sample.id, position) for position in place.ahead)
            return [pk for pk in front if pk is not None and pk not in held][:wanted]
        if not wanted:
            return []
        # What a split sample hands out is this labeller's alone while they hold it.
        most = min(wanted + len(held), assignment.MOST_AT_ONCE)
        theirs = assignment.next_items(self.store, self.sample, self.labeller, most, now=shell.now())
        return [pk for pk in theirs if pk not in held][:wanted]

    def again(self, held: set[int]) -> list[int]:
        """The keys of traces that the labeller has labelled and is asked once more, without what was said."""
        return repeats.hand_out(self.store, self.sample, self.labeller, held=held, now=shell.now())

    def second(self, pk: int, verdict: Any, *, changes: bool) -> bool:
        """Whether this answers a trace that came again; it is then kept apart from labels."""
        return repeats.take(self.store, self.labeller, pk, verdict, changes=changes, now=shell.now())

    def place(self) -> dict[str, Any]:
        """How far the labeller is. Of a split sample, theirs are what they labelled and what is open to them now."""
        at, open_now = self._place(1), None
        if self._split:
            open_now = assignment.wanting(self.store, self.sample, self.labeller, now=shell.now())
        return {
            "size": at.size - at.purged if open_now is None else at.labelled + open_now,
            "labelled": at.labelled,
            "left": at.left if open_now is None else open_now,
            "skipped": at.skipped,
            "seconds_each": at.seconds_each,
            "hint": self._hint(at),
        }

    def behind(self) -> list[int]:
        """The keys of what the labeller has answered, oldest first, for Back."""
        return self.store.answers.labelled_by(self.sample.id, self.labeller, limit=MOST_BEHIND)

    def has(self, pk: int) -> bool:
        """Whether this work is on the trace."""
        return pk in self._members

    @cached_property
    def _members(self) -> frozenset[int]:
        return frozenset(pk for pk, _ in self.store.samples.keys(self.sample.id))

    @property
    def name(self) -> str:
        return f"the sample {self.sample.name}"

    def standing(self, pks: Sequence[int]) -> dict[int, Standing]:
        return self.store.answers.standing(pks, self.labeller)

    def more(self, pk: int) -> dict[str, Any]:
        """What the surface shows with a trace besides its texts."""
        return {}

    def prevalence(self) -> str | None:
        """The share hallucinated in the traffic by the labels as they are now: "4.9% (1–13%)", "" while nothing is
        known of it. None where this work tells nothing of it."""
        if self.drawn is not None and not speaks_for_all(self.drawn):
            return None
        share = at_hand.labels_of(self.store, self.drawn.names if self.drawn else ()).prevalence.share
        return "" if share.value is None else estimate(share.value, share.low, share.high)

    def add(self, pk: int, label: Label, seen: int | None) -> tuple[Standing, bool]:
        return self.store.answers.add(pk, label, sample_id=self.sample.id, seen=seen, now=shell.now())

    def skip(self, pk: int) -> None:
        self.store.labels.skip(pk, sample_id=self.sample.id, labeller=self.labeller, now=shell.now())

    def over(self) -> bool:
        """Whether no further answer is wanted, though traces are left."""
        return False

    @property
    def is_flagged(self) -> bool:
        """Whether its traces are there because a threshold flags them."""
        drawn = self.drawn
        return drawn is not None and any(each.sample_id == drawn.id for each in self.store.rechecks.of())

    @property
    def drawn(self) -> Sample | None:
        """The sample that this work is on, None where it is on none."""
        return self.sample if self.body.get("sample") else None

    @cached_property
    def sample(self) -> Sample:
        name = self.body.get("sample")
        sample = self.store.samples.get(name) if isinstance(name, str) else None
        if sample is None:
            raise BadInput(f"there is no sample {str(name)[:200]!r}")
        return sample

    @cached_property
    def _split(self) -> bool:
        return assignment.assignment_of(self.store, self.sample).mode != "everyone"

    def _hint(self, at: Place) -> str:
        """Why these traces come now, where it is not for their place in the sample."""
        if self.body.get("gap_first") and (gap := find_gap(self.store, self.sample)):
            return held_back(gap)
        return f"the {at.skipped} you skipped, once more" if 0 < at.skipped == at.left else ""

    def _place(self, ahead: int) -> Place:
        gap_first = bool(self.body.get("gap_first"))
        return self.store.labels.place(self.sample.id, self.labeller, gap_first=gap_first, ahead=ahead)


class Once(Work):
    """Work in which no trace comes again."""

    def again(self, held: set[int]) -> list[int]:
        return []

    def second(self, pk: int, verdict: Any, *, changes: bool) -> bool:
        return False


class RecheckWork(Once):
    """The flagged traces that a recheck has drawn and nobody has labelled, in its order, until it is decided."""

    def next(self, held: set[int], wanted: int) -> list[int]:
        if self.over():
            return []
        place = self._place(wanted + len(held))
        front = (self.store.samples.at(self.sample.id, position) for position in place.ahead)
        return [pk for pk in front if pk is not None and pk not in held][:wanted]

    def place(self) -> dict[str, Any]:
        state = self._state
        ahead = f", about {count(state.standing.more)} more" if state.standing.more and not state.done else ""
        says = f"{count(state.counted, 'label')}{ahead}"
        labelled = state.sample.size - state.left
        return {"size": state.sample.size, "labelled": labelled, "left": state.left, "skipped": 0,
                "seconds_each": self._place(1).seconds_each, "says": says}  # fmt: skip

    def over(self) -> bool:
        return self._state.done

    def prevalence(self) -> None:
        return None  # these are flagged traces: what they say of the threshold is on the page

    @property
    def _state(self) -> recheck.State:
        return recheck.state(self.store, self._recheck, now=shell.now())

    @property
    def _recheck(self) -> Recheck:
        mine = next((each for each in self.store.rechecks.of() if each.sample_id == self.sample.id), None)
        if mine is None:
            raise BadInput(f"the sample {self.sample.name} was not drawn for a recheck: label it on the Label page")
        return mine

    def _place(self, ahead: int) -> Place:
        return self.store.labels.place(self.sample.id, self.labeller, only_open=True, ahead=ahead)


class DisputeWork(Once):
    """The disputed traces of a sample, or of all, or a few by their keys that deserve a second look: everybody's
    verdict is shown, and an answer decides."""

    def next(self, held: set[int], wanted: int) -> list[int]:
        return [pk for pk in self._waiting if pk not in held][:wanted]

    def place(self) -> dict[str, Any]:
        waiting, decided = len(self._waiting), len(self.behind())
        return {"size": waiting + decided, "labelled": decided, "left": waiting, "skipped": 0, "seconds_each": None}

    def behind(self) -> list[int]:
        if self._chosen:
            return list(self.store.answers.decided(self._chosen))
        return [each.pk for each in self._readings if each.adjudicated is not None and not each.purged]

    def has(self, pk: int) -> bool:
        # What a browser kept of an earlier choice comes with a later one.
        return any(each.pk == pk for each in self._readings) or bool(self._chosen and self.store.labels.of_trace(pk))

    @property
    def name(self) -> str:
        return "what several people labelled"

    def standing(self, pks: Sequence[int]) -> dict[int, Standing]:
        return self.store.answers.decided(pks)

    def more(self, pk: int) -> dict[str, Any]:
        last = {label.labeller: label for label in self.store.labels.of_trace(pk) if not label.adjudicates}
        return {"voices": [_voice(label) for label in last.values()]}

    def add(self, pk: int, label: Label, seen: int | None) -> tuple[Standing, bool]:
        decision = replace(label, adjudicates=True)
        return self.store.answers.add(pk, decision, sample_id=None, seen=seen, now=shell.now())

    def skip(self, pk: int) -> None:
        """It comes again after the others: the browser keeps their order."""

    @property
    def _waiting(self) -> list[int]:
        if self._chosen:
            decided = set(self.behind())
            return [pk for pk in self._chosen if pk not in decided]
        return [each.pk for each in self._readings if each.gold == "disputed" and not each.purged]

    @cached_property
    def _readings(self) -> list[Reading]:
        return self.store.labels.readings(self.sample.id if self.body.get("sample") else None)

    @cached_property
    def _chosen(self) -> list[int]:
        return chosen_keys(self.body) if self.body.get("chosen") else []


class TraceWork(Once):
    """A few traces by their keys, outside any sample: these labels stand for no traffic.

    `since` is the key of the labeller's newest label on them when the work began: it may be changed.
    """

    def next(self, held: set[int], wanted: int) -> list[int]:
        done = self.behind()
        return [pk for pk in self._keys if pk not in held and pk not in done][:wanted]

    def place(self) -> dict[str, Any]:
        size, labelled = len(self._keys), len(self.behind())
        return {"size": size, "labelled": labelled, "left": size - labelled, "skipped": 0, "seconds_each": None}

    def behind(self) -> list[int]:
        since = self.body.get("since") or 0
        if type(since) is not int:
            raise BadInput(f"since is a whole number, not {str(since)[:40]!r}")
        return [pk for pk, standing in self.standing(self._keys).items() if standing.key > since]

    def has(self, pk: int) -> bool:
        return pk in self._keys

    @property
    def name(self) -> str:
        return "this choice of traces"

    def prevalence(self) -> None:
        return None  # these labels stand for no traffic

    def add(self, pk: int, label: Label, seen: int | None) -> tuple[Standing, bool]:
        return self.store.answers.add(pk, label, sample_id=None, seen=seen, now=shell.now())

    def skip(self, pk: int) -> None:
        """It comes again after the others: the browser keeps their order."""

    @cached_property
    def _keys(self) -> list[int]:
        return chosen_keys(self.body)


WORKS: Mapping[str, type[Work]] = {
    "sample": Work, "recheck": RecheckWork, "disputes": DisputeWork, "traces": TraceWork,
}  # fmt: skip


def chosen_keys(body: Mapping[str, Any]) -> list[int]:
    """The keys of the traces that the browser asks for by name."""
    keys = body.get("chosen")
    if not isinstance(keys, list) or len(keys) > MOST_TRACES or not all(is_key(key) for key in keys):
        raise BadInput(f"chosen is a list of at most {MOST_TRACES} whole numbers")
    return keys


def is_key(value: object) -> bool:
    """Whether a database can look for it as a key."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _voice(label: Label) -> dict[str, Any]:
    """A labeller's verdict, as plain text."""
    return {
        "who": visible(label.labeller, 100),
        "verdict": label.verdict,
        "kinds": [visible(trace_card.kind_in_words(kind), 60) for kind in label.kinds],
        "note": visible(label.note or "", 500),
        "when": ago(label.created_at, shell.now()) if label.created_at else "",
        "spans": [[span.start, span.end] for span in label.spans],
    }
