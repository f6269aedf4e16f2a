"""What the labelling surface asks of the store: the traces that come next, and to keep an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrate.backends.text import sentences
from calibrate.backends.text.citations import citations
from calibrate.errors import BadInput, Forbidden
from calibrate.sanitize import visible
from calibrate.types import VERDICTS, Label, Sample, Span, Trace
from calibrate.workflow.labelling import flags, guides, repeats
from db import Store
from db.labelling.answers import Standing
from pages import shell
from pages.components.labelling import trace_card
from pages.components.labelling.segments import LONGEST as LONGEST_ANSWER
from pages.components.labelling.segments import line_breaks
from pages.components.labelling.works import Work, is_key
from pages.shell.identity import Person

LONGEST_LOOK = 600.0  # seconds; a longer pause is not labelling
MOST_AHEAD = 20
MOST_HELD = 500
MOST_SPANS = 200
LONGEST_NOTE = 2000


def ahead(work: type[Work], store: Store, person: Person, body: Mapping[str, Any]) -> dict[str, Any]:
    """The traces that come next for this person, apart from those that the browser holds, and how far the work is.

    With `pks`, these traces of it instead: those that somebody goes back to. With `behind`, as at the beginning and at
    the end of a session, also what the labels tell by now, for those who may know.
    """
    _same_person(person, body)
    at_hand = work(store, person.name, body)
    _may_work(person, at_hand)
    held, wanted = set(_keys(body, "held", MOST_HELD)), _whole(body, "wanted", 0, MOST_AHEAD)
    if pks := _keys(body, "pks", MOST_AHEAD):
        pks = [pk for pk in pks if at_hand.has(pk)]
    else:
        pks = at_hand.next(held, wanted)
    standing, flagged = at_hand.standing(pks), store.flags.of(pks, person.name)
    if wanted and not body.get("pks") and pks:  # hidden among new ones: it looks like them, without what was said
        pks += at_hand.again(held)
    stored = [(pk, store.traces.get(pk)) for pk in pks]
    answer: dict[str, Any] = {
        "traces": [
            {**document(pk, row.trace, standing.get(pk)), "flag": flagged.get(pk), **at_hand.more(pk)}
            for pk, row in stored
            if row is not None
        ],
        "place": at_hand.place(),
    }
    if body.get("behind"):
        answer["behind"] = at_hand.behind()
        answer |= {} if person.is_blind else {"known": at_hand.prevalence()}
    return answer


def take(work: type[Work], store: Store, person: Person, body: Mapping[str, Any]) -> dict[str, Any]:
    """Keep an answer. Sent again, it counts once; where what it answers has changed meanwhile, it changes nothing and
    says what stands."""
    _same_person(person, body)
    at_hand, pk = work(store, person.name, body), _whole(body, "pk", 1)
    _may_work(person, at_hand)
    stored = store.traces.get(pk)
    if stored is None or not at_hand.has(pk):
        raise BadInput(f"{at_hand.name} has no trace {pk}")
    if body.get("verdict") == "flag":
        _flag(store, at_hand.drawn, pk, person.name, body.get("note"))
        return {"turn": body.get("turn"), "status": "saved", "standing": None}
    seen = body.get("seen")
    if seen in (None, repeats.SECOND) and at_hand.second(pk, body.get("verdict"), changes=seen is not None):
        second = _second(store, stored.trace, person.name, body)
        return {"turn": body.get("turn"), "status": "saved", "standing": second}
    if body.get("verdict") == "skip":
        at_hand.skip(pk)
        return {"turn": body.get("turn"), "status": "saved", "standing": None}
    label = _label(store, stored.trace, person.name, body)
    standing, counts = at_hand.add(pk, label, None if seen is None else _whole(body, "seen", 1))
    reply = {"turn": body.get("turn"), "status": "saved" if counts else "conflict", "standing": _standing(standing)}
    return {**reply, "over": True} if at_hand.over() else reply


def document(pk: int, trace: Trace, standing: Standing | None) -> dict[str, Any]:
    """A trace as the surface draws it: blind, its answer whole, so that the browser can cut it where spans begin and
    end. Offsets are in code points."""
    card = trace_card.card(trace, blind=True)
    answer = trace.answer[:LONGEST_ANSWER]
    if trace.purged_at is not None:
        return {**card, "pk": pk, "purged": True, "standing": _standing(standing)}
    marks = citations(answer, sources=frozenset(source.number for source in trace.sources))
    return {
        **{name: card[name] for name in ("id", "question", "code", "sources", "counts", "context", "more", "facts")},
        "pk": pk,
        "answer": answer,
        "left_out": len(trace.answer) - len(answer),
        "cites": [[mark.start, mark.end, list(mark.numbers)] for mark in marks],
        "breaks": sorted(line_breaks(answer).items()),
        "sentences": [[part.start, part.end] for part in sentences(answer)],
        "standing": _standing(standing),
    }


def guide(store: Store) -> dict[str, Any]:
    """The labelling guide that counts now, with the kinds of error in the order of their digits."""
    current = guides.current(store)
    kinds = [{"key": kind.key, "name": kind.name, "meaning": kind.meaning} for kind in current.kinds]
    return {"version": current.version, "text": current.text, "kinds": kinds}


def _standing(standing: Standing | None) -> dict[str, Any] | None:
    if standing is None:
        return None
    label = standing.label
    return {
        "key": standing.key,
        "who": visible(label.labeller, 100),
        "verdict": label.verdict,
        "kinds": list(label.kinds),
        "spans": [[span.start, span.end, span.kind] for span in label.spans],
        "note": label.note or "",
    }


def _second(store: Store, trace: Trace, labeller: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """What stands of a trace that came again, for Back and Undo; no label is behind it."""
    if body.get("verdict") == "skip":
        return None
    return _standing(Standing(repeats.SECOND, _label(store, trace, labeller, body)))


def _same_person(person: Person, body: Mapping[str, Any]) -> None:
    """What one person left unsent in a browser is not sent under the name of the next."""
    if body.get("labeller") != person.name:
        raise Forbidden(f"You are {person.name} here now, and this is {str(body.get('labeller'))[:200]}'s work.")


def _may_work(person: Person, at_hand: Work) -> None:
    """What a recheck has drawn is flagged: whoever is blind to flags is not shown it."""
    if person.is_blind and at_hand.is_flagged:
        raise Forbidden("this sample was drawn for a recheck, and whoever only labels cannot open it")


def _flag(store: Store, sample: Sample | None, pk: int, labeller: str, note: object) -> None:
    """Ask the lead to look at a trace; without a note, take that back."""
    if isinstance(note, str):
        flags.raise_flag(store, pk, labeller, note=note, sample=sample, now=shell.now())
    else:
        flags.withdraw(store, pk, labeller)


def _label(store: Store, trace: Trace, labeller: str, body: Mapping[str, Any]) -> Label:
    verdict, note = body.get("verdict"), body.get("note") or ""
    if verdict not in VERDICTS:
        raise BadInput(f"a verdict is one of {', '.join(VERDICTS)}, not {str(verdict)[:40]!r}")
    if not isinstance(note, str) or len(note) > LONGEST_NOTE:
        raise BadInput(f"a note is a text of at most {LONGEST_NOTE} characters")
    wrong = verdict == "hallucinated"
    chosen = _chosen(body.get("kinds") or ()) if wrong else ()
    spans = _spans(trace, body.get("spans") or ()) if wrong else ()
    version = guides.get(store, _whole(body, "guide", 0)).version if body.get("guide") is not None else None
    kinds = tuple(dict.fromkeys((*chosen, *(span.kind for span in spans if span.kind))))
    offered = {kind.key for kind in guides.known_kinds(store)} if kinds else set()
    if unknown := [kind for kind in kinds if kind not in offered]:
        raise BadInput(f"no kind of error is called {unknown[0][:40]!r}: they are {', '.join(sorted(offered))}")
    seconds = body.get("seconds")
    if seconds is not None and (not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf")):
        raise BadInput(f"the seconds of an answer cannot be {str(seconds)[:40]!r}")
    return Label(
        trace_id=trace.id,
        labeller=labeller,
        verdict=verdict,
        kinds=kinds,
        spans=spans,
        note=note.strip() or None,
        seconds=None if seconds is None else round(min(seconds, LONGEST_LOOK), 3),
        guide=version,
    )


def _chosen(given: Iterable[Any]) -> tuple[str, ...]:
    chosen = given if isinstance(given, (list, tuple)) else [given]
    if unnamed := [kind for kind in chosen if not isinstance(kind, str)]:
        raise BadInput(f"a kind of error is named by a text, not {str(unnamed[0])[:40]!r}")
    return tuple(dict.fromkeys(chosen))


def _spans(trace: Trace, given: Sequence[Any]) -> tuple[Span, ...]:
    spans = []
    if not isinstance(given, (list, tuple)):
        raise BadInput(f"spans are a list, not {str(given)[:40]!r}")
    for part in given[:MOST_SPANS]:
        match part:
            case [int(start), int(end), str() | None as kind] if 0 <= start < end <= len(trace.answer):
                spans.append(Span(start, end, kind))
            case _:
                raise BadInput(f"a span is [start, end, kind] within the answer, not {str(part)[:80]}")
    return tuple(sorted(spans, key=lambda span: (span.start, span.end)))


def _whole(body: Mapping[str, Any], name: str, least: int, most: int = 2**31 - 1) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadInput(f"{name} cannot be {str(value)[:40]!r}; it is a whole number from {least} to {most}")
    return value


def _keys(body: Mapping[str, Any], name: str, most: int) -> list[int]:
    values = body.get(name) or []
    if not isinstance(values, list) or len(values) > most or not all(is_key(value) for value in values):
        raise BadInput(f"{name} is a list of at most {most} whole numbers")
    return values
