"""A labeller at work on a sample: which trace is shown, what a verdict does, where Back leads.

Labels are in the store; a desk holds only what one visit needs. Every showing of a trace is a turn with a number, and
a turn is answered once: a rerun, a second callback or a late click with an old number changes nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from calibrate.report.sentences.labels import held_back
from calibrate.types import Label, Sample, Trace, Verdict
from calibrate.workflow.evidence.label_counts import Gap, find_gap
from db import Store
from db.labels import Place
from pages import shell
from pages.components.text import plain

LONGEST_LOOK = 600.0  # seconds; a longer pause is not labelling


@dataclass
class Desk:
    """One labeller's visit to one sample.

    `trail` holds the traces passed, oldest first; `back_at` is the place in it that Back has led to, None at the front
    of the queue. With `only_open`, traces that anybody has labelled are passed over; with `gap_first`, those that hold
    back labels come first.
    """

    sample: Sample
    labeller: str
    trail: list[int] = field(default_factory=list)
    whole_trail: bool = False
    back_at: int | None = None
    turn: int = 0
    open: bool = False
    showing: int | None = None
    trace_id: str = ""
    shown_at: float = 0.0
    message: str = ""
    only_open: bool = False
    gap_first: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What the screen shows. `before` is this labeller's latest label when Back led here; `gap` is what the trace
    shown is one of, where labels wait for it."""

    number: int
    pk: int | None
    trace: Trace | None
    before: Label | None
    place: Place
    can_go_back: bool
    gap: Gap | None = None


def turn(store: Store, desk: Desk) -> Turn:
    """The trace to show now; the clock starts when it is first shown."""
    place = store.labels.place(desk.sample.id, desk.labeller, only_open=desk.only_open, gap_first=desk.gap_first)
    pk = desk.trail[desk.back_at] if desk.back_at is not None else _front(store, desk, place)
    if not desk.open or pk != desk.showing:
        desk.turn += 1
        desk.open, desk.showing, desk.shown_at = True, pk, time.monotonic()
    stored = store.traces.get(pk) if pk is not None else None
    desk.trace_id = stored.trace.id if stored else ""
    before = store.labels.latest(pk, desk.labeller) if pk is not None and desk.back_at is not None else None
    more_before = desk.back_at is None or desk.back_at > 0 or not desk.whole_trail
    can_go_back = more_before and (place.labelled > 0 or bool(desk.trail))
    in_gap = pk is not None and desk.back_at is None and (desk.gap_first or _only_skipped(place))
    gap = find_gap(store, desk.sample) if in_gap else None
    return Turn(desk.turn, pk, stored.trace if stored else None, before, place, can_go_back, gap)


def answer(
    store: Store, desk: Desk, number: int, verdict: Verdict, *, kinds: tuple[str, ...] = (), note: str | None = None
) -> None:
    """Save the verdict, then let the next trace come."""
    if not _is_open(desk, number) or desk.showing is None:
        return
    label = Label(
        trace_id=desk.trace_id,
        labeller=desk.labeller,
        verdict=verdict,
        kinds=kinds if verdict == "hallucinated" else (),
        note=note or None,
        seconds=round(min(time.monotonic() - desk.shown_at, LONGEST_LOOK), 1),
    )
    store.labels.add(desk.showing, label, sample_id=desk.sample.id, now=shell.now())
    _leave(desk, f"{verdict}, saved ✓")


def skip(store: Store, desk: Desk, number: int) -> None:
    """Put the trace at the end of the queue; one that Back led to stays as it was labelled."""
    if not _is_open(desk, number) or desk.showing is None:
        return
    if desk.back_at is None:
        store.labels.skip(desk.showing, sample_id=desk.sample.id, labeller=desk.labeller, now=shell.now())
    _leave(desk, "" if desk.back_at is None else "left as it was")


def back(store: Store, desk: Desk, number: int) -> None:
    """Go to the trace before this one, also to those of earlier visits."""
    if not _is_open(desk, number):
        return
    index = desk.back_at if desk.back_at is not None else len(desk.trail)
    if index == 0 and not desk.whole_trail:
        earlier = [pk for pk in _labelled_before(store, desk) if pk not in desk.trail]
        desk.trail = earlier + desk.trail
        desk.whole_trail = True
        index = len(earlier)
    if index > 0:
        desk.back_at, desk.open, desk.message = index - 1, False, ""


def tally(store: Store, desk: Desk) -> dict[str, int]:
    """How often this labeller gave each verdict in the sample."""
    latest = {
        label.trace_id: label.verdict
        for label in store.labels.export(desk.sample.id)
        if label.labeller == desk.labeller
    }
    counts: dict[str, int] = {}
    for verdict in latest.values():
        counts[verdict] = counts.get(verdict, 0) + 1
    return counts


def status(desk: Desk, turn: Turn) -> str:
    """The line above the trace, in Markdown: the sample, how far it is, and what the last press did."""
    place = turn.place
    parts = [f"**{plain(desk.sample.name, 60)}**", progress(place)]
    if desk.back_at is not None:
        parts.append("back: " + (f"you said {turn.before.verdict}" if turn.before else "you skipped it"))
    elif turn.gap is not None:
        parts.append(held_back(turn.gap))
    elif turn.pk is not None and _only_skipped(place):
        parts.append(f"the {place.skipped} you skipped, once more")
    elif place.skipped:
        parts.append(f"{place.skipped} skipped")
    if desk.message:
        parts.append(f":gray[{desk.message}]")
    return " · ".join(parts)


def progress(place: Place) -> str:
    """ "182 / 300 · 14 s each · about 27 min left"."""
    parts = [f"{place.labelled} / {place.size - place.purged}"]
    parts += [f"{place.purged} purged"] if place.purged else []
    if place.seconds_each is not None and place.left:
        parts += [f"{max(1, round(place.seconds_each))} s each"]
        parts += [_left(place.seconds_each * place.left)]
    return " · ".join(parts)


def _left(seconds: float) -> str:
    if seconds < 90:
        return "about a minute left"
    minutes = round(seconds / 60)
    return f"about {minutes} min left" if minutes < 100 else f"about {round(minutes / 60)} h left"


def _only_skipped(place: Place) -> bool:
    return 0 < place.skipped == place.left


def _is_open(desk: Desk, number: int) -> bool:
    return desk.open and number == desk.turn


def _leave(desk: Desk, message: str) -> None:
    pk = desk.showing
    if desk.back_at is None and pk is not None:
        desk.trail = [*(key for key in desk.trail if key != pk), pk]
    desk.back_at, desk.open, desk.message = None, False, message


def _front(store: Store, desk: Desk, place: Place) -> int | None:
    return None if place.position is None else store.samples.at(desk.sample.id, place.position)


def _labelled_before(store: Store, desk: Desk) -> list[int]:
    """The keys of this labeller's traces of the sample, in the order of their latest labels."""
    mine: dict[str, None] = {}
    for label in store.labels.export(desk.sample.id):
        if label.labeller == desk.labeller:
            mine.pop(label.trace_id, None)
            mine[label.trace_id] = None
    keys = (store.traces.find(trace_id) for trace_id in mine)
    return [pk for pk in keys if pk is not None]
