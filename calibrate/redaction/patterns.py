"""What an e-mail address, a phone number, a payment card and a key look like. Each function finds one kind in a text.

They are made to be right about what they find in logs of questions and answers; a list of true and false cases is in
`tests/redaction/`. They know no names and no addresses: that takes a model (`presidio`) or a hook of the user's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

Place: TypeAlias = tuple[int, int]
"""Where something was found: text[start:end], in code points."""

_EMAIL = re.compile(r"(?<![\w.%+-])[\w%+-][\w.%+'-]{0,63}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_]{2,63}(?![\w@])")

_GAP = "[ \u00a0-]"
_CARD = re.compile(
    rf"(?<![\w.-])(?:[2-6][0-9]{{3}}({_GAP})[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}(?:\1[0-9]{{1,3}})?"
    rf"|3[0-9]{{3}}({_GAP})[0-9]{{6}}\2[0-9]{{4,5}}|[2-6][0-9]{{12,18}})(?![\w-]|\.[0-9])"
)
_NON_DIGITS = re.compile(r"[^0-9]+")

_BETWEEN = "[ .\u00a0/-]"
# +49 30 1234567, +1 (415) 555-2671, +4930123456, 0049 30 1234567
_INTERNATIONAL = re.compile(
    rf"(?<![\w+.])(?:\+|00(?=[1-9][0-9]{{0,2}}[ ./-]))[1-9](?:(?:{_BETWEEN}|\) ?| ?\()?[0-9]){{8,14}}"
    r"(?![\w]|[.,][0-9])"
)
# (415) 555-2671, 415-555-2671, 1-415-555-2671
_AMERICAN = re.compile(
    r"(?<![\w.+-])(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])[2-9][0-9]{2}[ .-][0-9]{4}(?![\w-]|\.[0-9])"
)
# 030 1234567, 0171/1234567, 020 7946 0958, 01 23 45 67 89: a leading zero, and at least one gap
_TRUNK = re.compile(
    r"(?<![\w.,+/:-])(?![0-3][0-9][/ .-][01][0-9][/ .-](?:19|20)[0-9]{2}(?![0-9]))"
    r"(?:\(0[1-9][0-9]{0,4}\) ?|0[1-9][0-9]{0,4}[ /-])[0-9]{2,}(?:[ -][0-9]{2,})*(?![\w:/-]|[.,][0-9])"
)

_KEY = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"sk-[A-Za-z0-9_-]{20,}"  # OpenAI, Anthropic and those who write keys like them
    r"|gh[opsur]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,}"
    r"|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{24,}"
    r"|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{32,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"  # a JSON web token
    r")(?![A-Za-z0-9_])"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
# api_key = "…", Authorization: Bearer …: the value, where it has letters and digits
_ASSIGNED = re.compile(
    r"(?i)(?:api[ _-]?key|access[ _-]?key|secret(?:[ _-]?key)?|auth[ _-]?token|access[ _-]?token|token|password|passwd)"
    r"""["']?\s*[:=]\s*["']?([A-Za-z0-9_./+=~-]{16,})|\bbearer\s+([A-Za-z0-9_./+=~-]{16,})"""
)


def find_emails(text: str) -> Iterator[Place]:
    if "@" in text:
        for match in _EMAIL.finditer(text):
            yield match.span()


def find_cards(text: str) -> Iterator[Place]:
    """Find payment card numbers: 13 to 19 digits, in the usual groups or in one, with a right check digit (Luhn)."""
    for match in _CARD.finditer(text):
        start, end = match.span()
        # Four groups of four may have another number after them.
        for last in (end, start + 19) if match.group(1) and end > start + 19 else (end,):
            digits = _NON_DIGITS.sub("", text[start:last])
            if len(set(digits)) > 1 and _passes_luhn(digits):
                yield start, last
                break


def find_phones(text: str) -> Iterator[Place]:
    """Find phone numbers: international with a plus, North American, and national ones that begin with 0.

    A row of digits without a plus or a gap is none, because order numbers look like that.
    """
    if "+" in text or "00" in text:
        yield from _with_digits(_INTERNATIONAL, text, 9, 17)
    yield from (match.span() for match in _AMERICAN.finditer(text))
    if "0" in text:
        yield from _with_digits(_TRUNK, text, 9, 12)


def find_keys(text: str) -> Iterator[Place]:
    """Find API keys, tokens and private keys: those that begin as their makers mark them, and values given as such."""
    yield from (match.span() for match in _KEY.finditer(text))
    if "PRIVATE KEY" in text:
        yield from (match.span() for match in _PRIVATE_KEY.finditer(text))
    for match in _ASSIGNED.finditer(text):
        group = 1 if match.group(1) else 2
        value = match.group(group)
        if any(letter.isdigit() for letter in value) and any(letter.isalpha() for letter in value):
            yield match.span(group)


PATTERNS: Mapping[str, Callable[[str], Iterator[Place]]] = {
    "email": find_emails,
    "phone": find_phones,
    "card": find_cards,
    "key": find_keys,
}
"""The built-in kinds, by the names that the setting has for them."""


def _with_digits(pattern: re.Pattern[str], text: str, least: int, most: int) -> Iterator[Place]:
    for match in pattern.finditer(text):
        digits = _NON_DIGITS.sub("", match.group())
        if least <= len(digits) <= most and "000000" not in digits:
            yield match.span()


def _passes_luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
