"""Replace what is found in a trace by placeholders that are the same for the same value, in all of the trace."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

from calibrate.redaction.finders import Find, Finding, finder_of
from calibrate.types import Label, Source, Span, Token, Trace

_PLACEHOLDER = re.compile(r"\[([a-z][a-z -]{0,40}) ([0-9]{1,6})\]")
IN_NAMES = ("e-mail", "key")  # what an id or a group may not hold; digits alone do not count, many ids are numbers
FIRST = ("key", "email", "card", "phone")
OFF = ("", "0", "none", "off", "no", "false")


@dataclass(frozen=True)
class Redactor:
    """Replaces what its finders find. Making one loads what they need."""

    finders: tuple[Find, ...]

    def redact(self, trace: Trace, labels: Sequence[Label] = ()) -> tuple[Trace, tuple[Label, ...], Counter[str]]:
        """Return the trace and its labels without what was found, and how often each kind was replaced.

        Equal values get equal placeholders in the whole trace, numbered in the order question, context, sources,
        answer, and the rest: so that who compares answer and sources still sees what they share. Spans of labels move
        with the text. Keys of objects and numbers of sources stay distinct. A trace in which nothing is found is
        returned as it is.
        """
        numbering = _Numbering(self.finders)
        texts = [trace.question, trace.context, *(part for s in trace.sources for part in (s.text, s.title, s.number))]
        texts += [trace.answer, *trace.alternatives, *(token.text for token in trace.tokens or ()), *trace.attributes]
        numbering.taken = _taken(texts)
        question, context = numbering.text_or_none(trace.question), numbering.text_or_none(trace.context)
        sources = _redact_sources(trace.sources, numbering)
        answer, edits = numbering.edit(trace.answer)
        alternatives = tuple([numbering.text(text) for text in trace.alternatives])
        tokens = None if trace.tokens is None else _redact_tokens(trace.tokens, numbering, count=not edits)
        attributes = numbering.mapping(trace.attributes)
        schema = numbering.value(trace.schema)
        trace_id, group = numbering.name(trace.id), numbering.name(trace.group) if trace.group else trace.group
        moved = tuple([_redact_label(label, trace_id, edits, numbering) for label in labels])
        if not numbering.counts:
            return trace, tuple(labels), numbering.counts
        changed = replace(
            trace,
            id=trace_id,
            question=question,
            context=context,
            sources=sources,
            answer=answer,
            alternatives=alternatives,
            tokens=tokens,
            attributes=attributes,
            schema=schema,
            group=group,
        )
        return changed, moved, numbering.counts

    def redact_texts(self, texts: Sequence[str], beside: Trace) -> list[str]:
        """Redact texts that join a stored trace: new answers to its question. Its own placeholders stay as they are."""
        numbering = _Numbering(self.finders)
        numbering.taken = _taken([beside.question, beside.context, beside.answer, *beside.context_texts, *texts])
        return [numbering.text(text) for text in texts]

    def redact_value(self, value: Any) -> Any:
        """Redact every text in a JSON value, keys of objects included: equal values get equal placeholders."""
        return _Numbering(self.finders).value(value)

    def redact_text(self, text: str) -> str:
        """Redact a text that belongs to no stored trace, such as a message that quotes one."""
        return _Numbering(self.finders).text(text)


def redactor_of(names: str) -> Redactor | None:
    """Make a redactor from names separated by commas; None for an empty text or "none".

    Raises BadInput for a name that there is not, and Unavailable where what it needs is not installed.
    """
    if names.strip().lower() in OFF:
        return None
    chosen = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    # What is surest goes first: a card number is no phone number, and a key may hold digits.
    chosen.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    return Redactor(tuple(finder_of(name) for name in chosen))


@dataclass(frozen=True, slots=True)
class _Edit:
    """text[start:end] became `by`, which begins at `at` of the new text."""

    start: int
    end: int
    by: str
    at: int


@dataclass
class _Numbering:
    """The placeholders of one trace. `taken` is the highest number that each kind has in its texts already."""

    finders: Sequence[Find]
    taken: dict[str, int] = field(default_factory=dict)
    given: dict[tuple[str, str], str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def text(self, text: str) -> str:
        return self.edit(text)[0]

    def text_or_none(self, text: str | None) -> str | None:
        return self.edit(text)[0] if text else text

    def edit(self, text: str) -> tuple[str, Sequence[_Edit]]:
        places = self._find(text)
        if not places:
            return text, ()
        parts, edits, last, length = [], [], 0, 0
        for start, end, kind in places:
            placeholder = self._placeholder(kind, text[start:end])
            length += start - last
            edits.append(_Edit(start, end, placeholder, length))
            length += len(placeholder)
            parts += [text[last:start], placeholder]
            last = end
        self.counts.update(place.kind for place in places)
        return "".join([*parts, text[last:]]), edits

    def value(self, value: Any) -> Any:
        """Redact every text in a JSON value, keys included."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return self.mapping(value)
            case list() | tuple():
                return [self.value(item) for item in value]
            case _:
                return value

    def mapping(self, mapping: Mapping[str, Any]) -> dict[str, Any]:
        """Redact keys and values. No value is lost: keys stay distinct."""
        return dict(zip(self.keys(mapping), map(self.value, mapping.values()), strict=True))

    def keys(self, keys: Collection[str]) -> list[str]:
        """Redact what tells values apart. Of two that become equal, the later one gets a number: `[e-mail 1] (2)`."""
        redacted = [self.text(key) for key in keys]
        given = {new for key, new in zip(keys, redacted, strict=True) if new == key}
        for at, key in enumerate(keys):
            if redacted[at] != key:
                tries = chain([redacted[at]], (f"{redacted[at]} ({n})" for n in count(2)))
                redacted[at] = next(new for new in tries if new not in given)
                given.add(redacted[at])
        return redacted

    def name(self, name: str) -> str:
        """An id or a group: a digest takes its place if it holds an e-mail address or a key, so that equal names stay
        equal from trace to trace."""
        kinds = [place.kind for place in self._find(name) if place.kind in IN_NAMES]
        if not kinds:
            return name
        self.counts.update(kinds[:1])
        return f"redacted-{hashlib.blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=12).hexdigest()}"

    def _find(self, text: str) -> list[Finding]:
        """What the finders find, one after the other, until they find nothing more: each sees what was found before it
        as brackets, which is what stands there in the end. Placeholders that are there already are left. Where two
        places overlap, their union counts under the kind of the longer one."""
        findings: list[Finding] = []
        fresh, masked = True, text
        while fresh:
            fresh = False
            for find in self.finders:
                old: list[tuple[int, int]] | None = None
                for place in [Finding(*place) for place in find(masked)]:
                    if old is None:
                        old = [match.span() for match in _PLACEHOLDER.finditer(text)]
                    inside = any(start <= place.start and place.end <= end for start, end in old)
                    if inside or not masked[place.start : place.end].strip("[] "):
                        continue
                    findings.append(place)
                    fresh = True
                    masked = f"{masked[: place.start]}[{']' * (place.end - place.start - 1)}{masked[place.end :]}"
        return _merge(findings)

    def _placeholder(self, kind: str, value: str) -> str:
        key = (kind, _canonical(kind, value))
        if key not in self.given:
            self.taken[kind] = self.taken.get(kind, 0) + 1
            self.given[key] = f"[{kind} {self.taken[kind]}]"
        return self.given[key]


def _merge(findings: Sequence[Finding]) -> list[Finding]:
    merged: list[Finding] = []
    for place in sorted(findings):
        if merged and place.start < merged[-1].end:
            before = merged.pop()
            longer = max(before, place, key=lambda p: p.end - p.start)
            place = Finding(before.start, max(before.end, place.end), longer.kind)
        merged.append(place)
    return merged


def _canonical(kind: str, value: str) -> str:
    """What makes two spellings one value: a number is its digits, an address its letters in any case."""
    if kind in ("phone", "card"):
        return "".join(letter for letter in value if letter.isdigit())
    return value if kind == "key" else value.casefold()


def _taken(texts: Sequence[str | None]) -> dict[str, int]:
    """The highest number of each kind of placeholder in these texts: who redacts again must not give it anew."""
    taken: dict[str, int] = {}
    for text in texts:
        if text and "[" in text:
            for kind, number in _PLACEHOLDER.findall(text):
                taken[kind] = max(taken.get(kind, 0), int(number))
    return taken


def _redact_sources(sources: Sequence[Source], numbering: _Numbering) -> tuple[Source, ...]:
    parts = [(numbering.text(source.text), numbering.text_or_none(source.title)) for source in sources]
    numbers = numbering.keys([source.number for source in sources])
    return tuple(
        [
            source
            if text is source.text and title is source.title and number == source.number
            else replace(source, number=number, text=text, title=title)
            for source, (text, title), number in zip(sources, parts, numbers, strict=True)
        ]
    )


def _redact_tokens(tokens: Sequence[Token], numbering: _Numbering, *, count: bool) -> tuple[Token, ...]:
    """Redact the joined text: the first token of a place gets the placeholder, the others keep what lies beyond it.

    Log-probabilities stay. The most likely tokens of these places keep their probabilities and lose their texts.
    `count`: the answer held nothing, so what is found here was not counted yet.
    """
    joined = "".join([token.text for token in tokens])
    before = numbering.counts.copy()
    _, edits = numbering.edit(joined)
    if not count:
        numbering.counts = before
    if not edits:
        return tuple(tokens)
    changed, start = [], 0
    pending = list(edits)
    for token in tokens:
        end = start + len(token.text)
        pending = [edit for edit in pending if edit.end > start]
        touching = [edit for edit in pending if edit.start < end and edit.end > start]
        if not touching:
            changed.append(token)
        else:
            pieces, last = [], start
            for edit in touching:
                pieces.append(joined[last : max(last, edit.start)])
                if start <= edit.start:
                    pieces.append(edit.by)
                last = min(end, edit.end)
            pieces.append(joined[last:end])
            changed.append(Token("".join(pieces), token.logprob, tuple([("", p) for _, p in token.top])))
        start = end
    return tuple(changed)


def _redact_label(label: Label, trace_id: str, edits: Sequence[_Edit], numbering: _Numbering) -> Label:
    spans = tuple(
        [Span(_moved(s.start, edits, end=False), _moved(s.end, edits, end=True), s.kind) for s in label.spans]
    )
    return replace(label, trace_id=trace_id, note=numbering.text_or_none(label.note), spans=spans)


def _moved(at: int, edits: Sequence[_Edit], *, end: bool) -> int:
    """Where an offset lies in the new text; one inside of what was replaced goes to the edge of the placeholder."""
    shift = 0
    for edit in edits:
        if at <= edit.start and not (end and at > edit.start):
            break
        if at < edit.end:
            return edit.at + (len(edit.by) if end else 0)
        shift = edit.at + len(edit.by) - edit.end
    return at + shift
