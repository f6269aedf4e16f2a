"""Render prompt files as chat messages, with every text of a trace between fences.

A prompt file holds messages under lines `=== system ===`, `=== user ===`, `=== assistant ===` (none: it is one user
message), and places such as {answer} for quoted text. {fence} is a mark that occurs in none of the quoted texts, so
that none of them can end its own quotation or open another.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from calibrate.backends import files
from calibrate.errors import BadInput

OPTIONAL = frozenset({"question"})  # places that a team's wording may leave out
ECHO = 16  # characters; a shorter reply may occur in the trace without being copied from it
LINE = 40  # characters; a shorter line of a prompt may occur in an honest reply
_ROLE = re.compile(r"^=== (system|user|assistant) ===[^\S\n]*(?:\n|\Z)", re.MULTILINE)
_PLACE = re.compile(r"\{([a-z_]+)\}")
# No endpoint accepts lone surrogates or NUL; controls and tag characters only hide text from people.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U000e007f]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages as (role, text) pairs. `quoted` are the trace's texts in them, `wording` the file's longer lines."""

    messages: tuple[tuple[str, str], ...]
    fence: str
    quoted: tuple[str, ...]
    wording: tuple[str, ...]

    @property
    def characters(self) -> int:
        return sum(len(text) for _, text in self.messages)

    def find_echo(self, reply: str, *, quotes: bool = False) -> str | None:
        """Say what a reply merely repeats of the prompt, or None. With `quotes` it may repeat quoted text."""
        if self.fence in reply.lower():
            return "it repeats the prompt's fence"
        if any(line in reply for line in self.wording):
            return "it repeats the prompt"
        bare = squeeze(reply)
        if not quotes and len(bare) >= ECHO and any(bare in squeeze(text) for text in self.quoted):
            return "it repeats text of the trace"
        return None

    def quotes(self, part: str) -> bool:
        """Tell whether this part of a reply occurs in the trace, apart from blanks."""
        return any(squeeze(part) in squeeze(text) for text in self.quoted)


@dataclass(frozen=True, slots=True)
class _Template:
    messages: tuple[tuple[str, str], ...]
    places: frozenset[str]
    wording: tuple[str, ...]


def render(name: str, texts: Mapping[str, str | Sequence[str]]) -> Prompt:
    """Render a prompt file: each {place} becomes its text (or each of its texts) between fences.

    Raises BadInput if the file lacks a required place, or has one that nothing fills.
    """
    return _render(_parse_template(name, files.read(name), files.packaged(name)), texts)


def render_body(body: str, texts: Mapping[str, str | Sequence[str]], *, fenced: bool = True) -> Prompt:
    """Render messages that `find_problem` has passed. Without fences the texts are pasted in, one after the other."""
    return _render(_template_of(body), texts, fenced=fenced)


def find_problem(body: str, needed: frozenset[str], offered: frozenset[str]) -> str | None:
    """Say why these messages cannot be sent: a place is missing or nothing fills it, or nobody is asked."""
    places = frozenset(_PLACE.findall(body))
    if missing := sorted(needed - places):
        return f"it lacks {_in_braces(missing)}; put it back"
    if unknown := sorted(places - offered):
        return f"it has {_in_braces(unknown)}, which nothing fills; it may use {_in_braces(offered)}"
    if not any(role == "user" for role, _ in _parse_messages(body)):
        return "it has no '=== user ===' message; add one"
    return None


def _render(template: _Template, texts: Mapping[str, str | Sequence[str]], *, fenced: bool = True) -> Prompt:
    quoted = {place: [clean(text) for text in ([value] if isinstance(value, str) else value)]
              for place, value in texts.items()}  # fmt: skip
    quotations = [text for group in quoted.values() for text in group]
    fence = _choose_fence(quotations, [text for _, text in template.messages])
    write = _put_in_fence if fenced else _paste
    values = {place: write(place, group, fence) for place, group in quoted.items()} | {"fence": fence}
    # One pass over the file's own text: a {place} inside a trace's text is not replaced.
    messages = tuple((role, _PLACE.sub(lambda place: values[place[1]], text)) for role, text in template.messages)
    return Prompt(messages, fence, tuple(quotations), template.wording)


def problem(name: str, text: str | None = None) -> str | None:
    """Say why this text (by default the team's version) cannot be used as the prompt of this name; None if it can."""
    try:
        _parse_template(name, files.read(name) if text is None else text, files.packaged(name))
    except BadInput as error:
        return str(error)
    return None


def clean(text: str) -> str:
    """Clean a text for sending: line ends become \\n; surrogates, controls and tag characters become U+FFFD."""
    return _HIDDEN.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def squeeze(text: str) -> str:
    """Remove blanks and convert to lower case."""
    return "".join(clean(text).split()).lower()


@lru_cache(maxsize=64)
def _parse_template(name: str, text: str, packaged: str) -> _Template:
    messages = _parse_messages(text)
    places = frozenset(_PLACE.findall(text))
    needed = frozenset(_PLACE.findall(packaged))
    if missing := sorted(needed - places - OPTIONAL):
        raise BadInput(
            f"the prompt {name} lacks {_in_braces(missing)}; put it back, or go back to the packaged wording"
        )
    if unknown := sorted(places - needed):
        raise BadInput(
            f"the prompt {name} has {_in_braces(unknown)}, which nothing fills; it may use {_in_braces(needed)}"
        )
    if not any(role == "user" for role, _ in messages):
        raise BadInput(f"the prompt {name} has no '=== user ===' message; add one")
    return _template_of(text)


@lru_cache(maxsize=64)
def _template_of(text: str) -> _Template:
    messages = _parse_messages(text)
    wording = {line.strip() for role, body in messages if role != "assistant" for line in _worded_lines(role, body)}
    lines = tuple(sorted(line for line in wording if len(line) >= LINE and not _PLACE.search(line)))
    return _Template(messages, frozenset(_PLACE.findall(text)), lines)


def _worded_lines(role: str, body: str) -> Iterator[str]:
    """The lines of a message, without the texts that a system message quotes: traffic may share its sources with them,
    and an honest reply about it repeats these."""
    inside = False
    for line in body.split("\n"):
        inside = inside or (role == "system" and line.startswith("BEGIN ") and line.endswith(" {fence}"))
        if not inside:
            yield line
        inside = inside and not (line.startswith("END ") and line.endswith(" {fence}"))


def _parse_messages(text: str) -> tuple[tuple[str, str], ...]:
    before, *rest = _ROLE.split(text.replace("\r\n", "\n"))
    pairs = [("user", before), *zip(rest[::2], rest[1::2], strict=True)]
    return tuple((role, body.strip()) for role, body in pairs if body.strip())


def _in_braces(places: Sequence[str] | frozenset[str]) -> str:
    return ", ".join(f"{{{place}}}" for place in sorted(places))


def _choose_fence(quoted: Sequence[str], wording: Sequence[str]) -> str:
    """Choose 16 hex digits that occur in no quoted text, from a digest of all of them."""
    digest = hashlib.blake2b(digest_size=8)
    for text in quoted:
        digest.update(len(text).to_bytes(8, "big") + text.encode())
    lowered = [text.lower() for text in (*quoted, *wording)]
    while any(digest.hexdigest() in text for text in lowered):
        digest.update(b"again")
    return digest.hexdigest()


def _put_in_fence(place: str, texts: Sequence[str], fence: str) -> str:
    labels = [place] if len(texts) == 1 else [f"{place} {number}" for number in range(1, len(texts) + 1)]
    return "\n".join(
        f"BEGIN {label} {fence}\n{text}\nEND {label} {fence}" for label, text in zip(labels, texts, strict=True)
    )


def _paste(place: str, texts: Sequence[str], fence: str) -> str:
    return "\n\n".join(texts)
