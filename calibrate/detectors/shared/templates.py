"""Judges' templates: a head that says how a reply is read, then messages. `grammar` parses one, `verdict` a reply.

    === reply ===
    form: tag score
    supported: no
    unsupported: yes
    unit: answer
    tokens: 20
    logprobs: 10
    === user ===
    {context}

The form is `word` (the reply begins with one of the two words), `tag NAME` (it stands between <NAME> and </NAME>) or
`json FIELD` (it is that field of the one JSON object).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from calibrate.backends.chat import prompts
from calibrate.detectors.shared.replies import Unparsed
from calibrate.errors import BadInput

Form = Literal["word", "tag", "json"]
Unit = Literal["answer", "sentence"]
_HEAD = "=== reply ==="
_KEYS = ("form", "supported", "unsupported", "unit", "tokens", "logprobs")
_NAME = re.compile(r"[A-Za-z_][\w-]{0,39}", re.ASCII)
_BEGIN = r"[\s*_`\"'“”‘’#>(\[]{0,20}(?:(?:final\s+)?(?:answer|verdict|score)\s*[*_]{0,2}\s*[:=][\s*_`\"'“”‘’]{0,10})?"
_END = re.compile(r"\s*(?:\Z|[.,:;!*_`\"'“”‘’)\]…—–-]|\n)")


@dataclass(frozen=True, slots=True)
class Grammar:
    """How the replies to a template are read. The words are in lower case; `field` names the tag or the JSON field."""

    form: Form
    field: str
    supported: str
    unsupported: str
    unit: Unit
    tokens: int
    logprobs: int
    body: str

    @property
    def words(self) -> tuple[str, str]:
        return self.supported, self.unsupported


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reply says, the offset of the word in it (None in JSON), and its reason ("" for none)."""

    is_unsupported: bool
    start: int | None
    reason: str


def problem(name: str, text: str) -> str | None:
    """Say why a text cannot be used as the template of this name; None if it can."""
    try:
        grammar(name, text)
    except BadInput as error:
        return str(error)
    return None


@lru_cache(maxsize=32)
def grammar(name: str, text: str) -> Grammar:
    """Parse a template. Raises BadInput, with what is wrong, for one that cannot be used."""
    head, mark, body = text.replace("\r\n", "\n").partition("=== reply ===")[2].partition("\n===")
    if not text.lstrip().startswith(_HEAD) or not mark:
        raise BadInput(f"the template {name} has to begin with a line {_HEAD}, and messages after it")
    fields = _fields(name, head)
    form, _, field = fields.get("form", "").partition(" ")
    supported, unsupported = (fields.get(key, "").casefold() for key in ("supported", "unsupported"))
    if form not in ("word", "tag", "json") or (form == "word") != (not field) or (field and not _NAME.fullmatch(field)):
        raise BadInput(f"the template {name}: the form is `word`, `tag NAME` or `json FIELD`")
    if not supported or not unsupported or supported == unsupported:
        raise BadInput(f"the template {name} has to name two different words, as supported: … and unsupported: …")
    unit = fields.get("unit", "answer")
    if unit not in ("answer", "sentence"):
        raise BadInput(f"the template {name}: the unit is `answer` or `sentence`")
    body = f"==={body}"
    judged = "answer" if unit == "answer" else "sentence"
    offered = frozenset({"context", "question", "answer", "sentence", "fence"} - ({"sentence"} - {judged}))
    if why := prompts.find_problem(body, frozenset({"context", judged}), offered):
        raise BadInput(f"the template {name}: {why}")
    return Grammar(
        form,  # type: ignore[arg-type]
        field,
        supported,
        unsupported,
        unit,  # type: ignore[arg-type]
        _number(name, fields, "tokens", 300, 1, 8192),
        _number(name, fields, "logprobs", 0, 0, 20),
        body,
    )


def _fields(name: str, head: str) -> dict[str, str]:
    lines = [line.partition(":") for line in head.split("\n") if line.strip()]
    fields = {key.strip().lower(): value.strip() for key, _, value in lines}
    if unknown := sorted(set(fields) - set(_KEYS)):
        raise BadInput(f"the template {name} has {unknown[0]!r} in its head, which may hold {', '.join(_KEYS)}")
    return fields


def _number(name: str, fields: dict[str, str], key: str, default: int, low: int, high: int) -> int:
    text = fields.get(key, str(default))
    if not text.isdecimal() or not low <= int(text) <= high:
        raise BadInput(f"the template {name}: {key} cannot be {text!r}; it is a whole number from {low} to {high}")
    return int(text)


def verdict(rules: Grammar, text: str, read_object: Callable[[str], dict[str, Any]]) -> Verdict:
    """Read a reply. Raises Unparsed for one that is not clearly in the template's form."""
    if rules.form == "json":
        return _of_object(rules, read_object(text))
    return _of_tag(rules, text) if rules.form == "tag" else _of_word(rules, text)


def _of_object(rules: Grammar, document: dict[str, Any]) -> Verdict:
    value = document.get(rules.field)
    word = value.strip().casefold() if isinstance(value, str) else value
    if word not in rules.words:
        raise Unparsed(f"JSON without one of the words as {rules.field!r}")
    reasons = [value for key, value in document.items() if key != rules.field]
    texts = [text for value in reasons for text in (value if isinstance(value, list) else [value])]
    return Verdict(word == rules.unsupported, None, " ".join(text for text in texts if isinstance(text, str)))


def _of_tag(rules: Grammar, text: str) -> Verdict:
    tag = re.escape(rules.field)
    marks = re.findall(rf"<{tag}>", text)
    match = re.search(rf"<{tag}>\s*(?P<word>[^<>]{{1,40}}?)\s*</{tag}>", text)
    if len(marks) != 1 or match is None:
        raise Unparsed(f"not exactly one <{rules.field}> with its end")
    word = match["word"].casefold()
    if word not in rules.words:
        raise Unparsed(f"another word than the two in <{rules.field}>")
    return Verdict(
        word == rules.unsupported, match.start("word"), (text[: match.start()] + text[match.end() :]).strip()
    )


def _of_word(rules: Grammar, text: str) -> Verdict:
    either = "|".join(re.escape(word) for word in sorted(rules.words, key=len, reverse=True))
    match = re.match(rf"{_BEGIN}(?P<word>{either})(?![\w'’/-])", text, re.IGNORECASE)
    if match is None:
        raise Unparsed("it does not begin with one of the two words")
    after = text[match.end() :]
    if re.match(rf"[\W_]{{0,4}}(?:\bor\b|/|\||,)?[\W_]{{0,4}}(?:{either})\b", after, re.IGNORECASE):
        raise Unparsed("it repeats the choice")
    if not _END.match(after):
        raise Unparsed(f"{match['word']!r} is part of a phrase")
    is_unsupported = match["word"].casefold() == rules.unsupported
    return Verdict(is_unsupported, match.start("word"), re.sub(r"^[\W_]+", "", after).strip())
