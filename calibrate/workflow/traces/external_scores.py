"""External detectors: scores that a team has computed elsewhere, their direction, and their revisions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from numbers import Real
from typing import Literal

from calibrate import registry
from calibrate.errors import BadInput, Forbidden, StoreError
from calibrate.types import ExternalDetector, FlagWhen, StatedScore
from calibrate.workspace import current, use
from db import Store
from db.audit import actor
from db.exchange.external import NewScore

NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.:@/+-]{0,99}")  # what a thresholds file takes
REVISION = re.compile("[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,99}")
RESERVED = ("all",)
OURS = "touchstone."
"""Where other systems keep the scores that we wrote there, under this and a detector's name."""
MOST = 200  # external detectors in one store
BATCH = 10_000
LONGEST_REASON = 1_000  # characters
FIRST = "1"
Bound = float | Literal["none"] | None
"""A lowest or highest value; None leaves the one that there is, and "none" takes it away."""
TRIES = 5


class Fate(StrEnum):
    """What became of one score."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"
    DIFFERS = "differs"  # another value for the same content, or under the same stated revision: the first stays
    UNKNOWN = "unknown"  # no such trace, or a purged one
    NO_NUMBER = "no number"
    OUTSIDE = "outside"  # of the bounds


@dataclass(frozen=True, slots=True)
class TakenScores:
    """What became of the scores of one detector.

    `new` were stored, `same` were in the store already, `changed` have another value than before and began the
    `revision` that counts now. `differing` have another value than the first of the same content and were left out, and
    so were those of `unknown` traces, those that are no finite number, and those `outside` of the detector's bounds.
    """

    name: str
    revision: str
    new: int = 0
    same: int = 0
    changed: int = 0
    differing: int = 0
    unknown: int = 0
    no_number: int = 0
    outside: int = 0

    @property
    def left_out(self) -> int:
        return self.differing + self.unknown + self.no_number + self.outside


def external_of(store: Store) -> Mapping[str, ExternalDetector]:
    """The detectors whose scores were imported, by name."""
    return {detector.name: detector for detector in store.external.all()}


def use_external(store: Store) -> None:
    """Let this process know the store's external detectors from now on, beside those that come with Touchstone.

    Whoever opens a store calls it, and whoever changes one of them; a page calls it anew for every view.
    """
    external = external_of(store)
    if external != current().external:
        use(replace(current(), external=external))


def name_of(text: str) -> str:
    """A detector's name from what another system calls it: blanks become underscores. Raises BadInput for a name that a
    detector cannot have."""
    name = "_".join(text.split())
    if not NAME.fullmatch(name):
        raise BadInput(
            f"a detector cannot be called {text[:100]!r}: its name has letters, digits and _.:@/+-, begins with a "
            "letter or a digit, and has at most 100 characters"
        )
    if name in RESERVED or name.startswith(OURS):
        raise BadInput(f"a detector cannot be called {name!r}: the name is taken for something else; give another")
    if name in registry.installed():
        raise BadInput(
            f"{name} is a detector of Touchstone, which computes its scores itself: import these under another name, "
            f"like {name}_imported"
        )
    return name


def define_external(
    store: Store,
    name: str,
    *,
    flag_when: FlagWhen | None,
    unit: str | None = None,
    low: Bound = None,
    high: Bound = None,
    now: datetime,
) -> ExternalDetector:
    """Say which scores of an external detector are suspicious, in which unit they are, and between which bounds.

    What is None stays as it is. Raises BadInput for a name that it cannot have, for bounds that are none or leave
    stored scores outside, and for another direction than the one that saved thresholds go by.
    """
    after = plan_external(store, name, flag_when=flag_when, unit=unit, low=low, high=high, now=now)
    if after != store.external.find(after.name):
        store.external.save(after, now=now)
    use_external(store)
    return after


def plan_external(
    store: Store,
    name: str,
    *,
    flag_when: FlagWhen | None,
    unit: str | None = None,
    low: Bound = None,
    high: Bound = None,
    now: datetime,
) -> ExternalDetector:
    """What `define_external` would store. Raises the same."""
    name = name_of(name)
    if flag_when not in (None, "above", "below"):
        raise BadInput(f"{name}: flag-when cannot be {flag_when!r}; it is above or below")
    before = store.external.find(name) or _make(store, name, now)
    low, high = _bound(low, before.low), _bound(high, before.high)
    if not all(bound is None or math.isfinite(bound) for bound in (low, high)):
        raise BadInput(f"{name}: a bound is a finite number; leave it out where there is none, or say none")
    if low is not None and high is not None and low >= high:
        raise BadInput(f"{name}: the lowest value {low:g} is not below the highest, {high:g}")
    if (low, high) != (before.low, before.high):
        _refuse_what_leaves_out(store, before, low, high)
    turns = before.flag_when is not None and flag_when is not None and flag_when != before.flag_when
    if turns and name in store.points.latest():
        raise BadInput(
            f"{name} flags {before.flag_when} its threshold, and a saved threshold goes by that: import the scores "
            "under another name to turn them round"
        )
    unit = " ".join(unit.split())[:200] if unit else before.unit
    return replace(before, flag_when=flag_when or before.flag_when, unit=unit, low=low, high=high)


def remove_external(store: Store, name: str, *, now: datetime) -> None:
    """Remove an external detector that never had a score. Raises BadInput for one that had, or that there is not."""
    name = name_of(name)
    if store.external.find(name) is None:
        raise BadInput(f"there is no external detector {name}; `scores list` has those that there are")
    if not store.external.remove(name, by=_who(), now=now):
        raise BadInput(f"{name} has scores, or was run: it stays, as thresholds and releases may go by them")
    use_external(store)


def take_scores(
    store: Store, name: str, scores: Iterable[StatedScore], *, revision: str | None = None, now: datetime
) -> TakenScores:
    """Store scores that were computed elsewhere, as those of the external detector `name`, made when it is new.

    Taking the same scores again changes nothing. A score that has changed begins a new revision, numbered or called
    `revision`, which takes the unchanged ones over; the old one stays. New scores belong to the newest revision. Raises
    BadInput for a name or a revision that there cannot be.
    """
    intake = Intake(store, name, revision=revision, now=now)
    batch: list[StatedScore] = []
    for score in scores:
        batch.append(score)
        if len(batch) == BATCH:
            intake.add(batch)
            batch = []
    intake.add(batch)
    return intake.taken


class Intake:
    """Takes the scores of one detector, batch by batch, each in a transaction of its own. A new detector is stored with
    its first score, as `planned` where that is given.

    Several batches of one intake begin one new revision at most, so that whoever reads scores page by page has one
    intake for all pages. With `first_counts` they begin none: a score that stands already stays, as in a stream, where
    a judge that says something else of every text would begin a revision with every batch.
    """

    def __init__(
        self, store: Store, name: str, *, revision: str | None = None, first_counts: bool = False,
        planned: ExternalDetector | None = None, now: datetime,
    ) -> None:  # fmt: skip
        self.name = name_of(name)
        self._store, self._stated, self._now = store, revision, now
        self._first_counts = first_counts
        stored = store.external.find(self.name)
        self._detector = stored or planned or _make(store, self.name, now)
        self._is_stored = stored is not None
        self._check_revision()
        self._target, self._begun = self._detector.revision, False  # begun by an earlier batch of this intake
        self._seen: set[bytes] = set()
        self._counts: Counter[Fate] = Counter()

    @property
    def taken(self) -> TakenScores:
        """What became of the scores so far."""
        n = self._counts
        return TakenScores(
            self.name, self._target, n[Fate.NEW], n[Fate.SAME], n[Fate.CHANGED], n[Fate.DIFFERS], n[Fate.UNKNOWN],
            n[Fate.NO_NUMBER], n[Fate.OUTSIDE],
        )  # fmt: skip

    def add(self, scores: Sequence[StatedScore]) -> list[Fate]:
        """Store a batch. Says of each score what became of it."""
        contents = self._store.external.contents(sorted({score.trace_id for score in scores}))
        for _ in range(TRIES):
            fates, fresh, first = self._sort_out(scores, contents)
            if not fresh or self._write(fates, fresh):
                self._counts.update(fates)
                self._seen.update(map(bytes.fromhex, first))
                return fates
            self._detector = self._store.external.find(self.name) or self._detector
            self._check_revision()
            self._target, self._begun = self._detector.revision, False
        raise StoreError(f"others keep importing scores of {self.name}: import these again when they are done")

    def _sort_out(
        self, scores: Sequence[StatedScore], contents: dict[str, str]
    ) -> tuple[list[Fate], dict[str, NewScore], dict[str, float]]:
        hashes = sorted({*contents.values()})
        stored = self._store.external.values(self.name, self._target, hashes)
        low, high = self._detector.low, self._detector.high
        fates, fresh = [], dict[str, NewScore]()
        first: dict[str, float] = {}  # of each content in this batch
        for score in scores:
            content, value = contents.get(score.trace_id), _number(score.value)
            if value is None:
                fate = Fate.NO_NUMBER
            elif (low is not None and value < low) or (high is not None and value > high):
                fate = Fate.OUTSIDE
            elif content is None:
                fate = Fate.UNKNOWN
            elif content in first:
                fate = Fate.SAME if first[content] == value else Fate.DIFFERS
            elif content not in stored:
                fate = Fate.NEW
            elif stored[content] == value:
                fate = Fate.SAME
            elif bytes.fromhex(content) in self._seen or self._is_fixed:
                fate = Fate.DIFFERS
            else:
                fate = Fate.CHANGED
            if content is not None and value is not None and fate != Fate.OUTSIDE:
                first.setdefault(content, value)
            if fate in (Fate.NEW, Fate.CHANGED):
                assert content is not None
                assert value is not None
                fresh[content] = NewScore(content, value, score.reason[:LONGEST_REASON] if score.reason else None)
            fates.append(fate)
        return fates, fresh, first

    def _write(self, fates: Sequence[Fate], fresh: dict[str, NewScore]) -> bool:
        """Store the scores under the revision they belong to. False where another import has begun one meanwhile."""
        target = self._target
        if self._stated is not None:
            target = self._stated
        elif Fate.CHANGED in fates and not self._begun:
            target = self._next()
        rows = [fresh[content] for content in sorted(fresh)]
        begins = target != self._target
        if not self._is_stored:
            if self._store.external.find(self.name) is None:
                self._store.external.save(self._detector, now=self._now)
            use_external(self._store)
            self._is_stored = True
        written = self._store.external.add(
            self.name, rows, after=self._target, revision=target, replacing=begins or self._begun, by=_who(),
            now=self._now,
        )  # fmt: skip
        if written and begins:
            self._target, self._begun = target, True
            use_external(self._store)
        return written

    @property
    def _is_fixed(self) -> bool:
        """Whether what stands in the revision stays, as in a stated one that was there before."""
        return self._first_counts or (self._stated == self._target and not self._begun)

    def _next(self) -> str:
        revisions = {*self._store.external.revisions(self.name), self._detector.revision}
        number = len(revisions) + 1
        while str(number) in revisions:
            number += 1
        return str(number)

    def _check_revision(self) -> None:
        newest, stated = self._detector.revision, self._stated
        if stated is None or stated == newest:
            return
        if not REVISION.fullmatch(stated):
            raise BadInput(
                f"a revision cannot be called {stated[:100]!r}: it has letters, digits and _.:@/-, at most 100 of them"
            )
        if stated in self._store.external.revisions(self.name):
            raise BadInput(
                f"{self.name}: the revision {stated} was followed by {newest}, and stays as it is: name a new one, or "
                "leave --revision out"
            )


class Intakes:
    """Takes scores of several detectors that come along with traces, with one intake for each."""

    def __init__(self, store: Store, *, first_counts: bool = False, now: datetime) -> None:
        self._store, self._first_counts, self._now = store, first_counts, now
        self._intakes: dict[str, Intake] = {}
        self.refused: dict[str, str] = {}
        """Why the scores of a name were left out."""

    @property
    def taken(self) -> tuple[TakenScores, ...]:
        """What became of the scores so far, by detector."""
        return tuple(self._intakes[name].taken for name in sorted(self._intakes))

    def add(self, scores: Iterable[tuple[str, StatedScore]]) -> None:
        """Store a batch. Scores under a name that no external detector can have are left out."""
        named: dict[str, list[StatedScore]] = {}
        for name, score in scores:
            named.setdefault(name, []).append(score)
        for name, batch in named.items():
            if name in self.refused:
                continue
            try:
                if name not in self._intakes:
                    self._intakes[name] = Intake(self._store, name, first_counts=self._first_counts, now=self._now)
            except Forbidden:
                raise
            except BadInput as error:
                if len(self.refused) < MOST:
                    self.refused[name] = str(error)
                continue
            self._intakes[name].add(batch)


def _bound(wanted: Bound, before: float | None) -> float | None:
    return before if wanted is None else None if wanted == "none" else wanted


def _refuse_what_leaves_out(store: Store, detector: ExternalDetector, low: float | None, high: float | None) -> None:
    outside = store.external.outside(detector.name, detector.revision, low=low, high=high)
    if outside:
        lowest, _, highest = store.external.spread(detector.name, detector.revision) or (0.0, 0.0, 0.0)
        are = "score is" if outside == 1 else "scores are"
        raise BadInput(
            f"{detector.name}: {outside:,} stored {are} outside of these bounds; they go from {lowest:g} to {highest:g}"
        )


def _make(store: Store, name: str, now: datetime) -> ExternalDetector:
    if len(store.external.all()) >= MOST:
        raise BadInput(f"{name}: this store has {MOST} external detectors already, the most that there can be")
    return ExternalDetector(name, None, None, None, None, FIRST, _who(), now)


def _who() -> str:
    person = actor()
    return person.name if person else "somebody"


def _number(value: object) -> float | None:
    """The value as a finite number; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
