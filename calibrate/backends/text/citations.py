"""Find citation marks in an answer, and the sentence that each belongs to.

Citations are `[1]`, `[1, 2]`, `[1-3]`, `[1][2]`, `[^1]`, `【1】`, `【4†source】`, `［１］`, `[Source 2]`, `[1](https://…)`
and, on request, `(1)`. Only if there is a source of that number: years (`[2024]`), subscripts (`arr[0]`), intervals
(`[0, 1]`). Never: anything inside code, images, and the entries of a reference list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass

import regex

from calibrate.backends.text.segments import Part, sentences

RANGE_LIMIT = 50  # a longer range, such as [1-1000000000], is kept as its two ends


@dataclass(frozen=True, slots=True)
class Citation:
    """One mark, answer[start:end], and the numbers it cites, in the form of the sources' numbers."""

    start: int
    end: int
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence with the marks that belong to it."""

    start: int
    end: int
    citations: tuple[Citation, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The distinct numbers that the sentence cites, in order."""
        return tuple(dict.fromkeys(number for citation in self.citations for number in citation.numbers))


_MARK = regex.compile(r"(?P<open>[\[【［(])(?P<body>[^\[\]【】［］()\n]{1,80})(?P<close>[\]】］)])")
_PAIRS = {"[": "]", "【": "】", "［": "］", "(": ")"}
_LABEL = regex.compile(
    r"(?i)^(?:sources?|docs?|documents?|passages?|refs?|citations?|quellen?|fuentes?)?\.?\s*#?\^?\s*"
)
_NUMBER = regex.compile(r"#?\^?(\p{Nd}+)(?::\p{Nd}+)?\^?(?:†.*)?$")
_RANGE = regex.compile(r"\^?(\p{Nd}+)\s*[-–—]\s*(\p{Nd}+)\^?$")
_CODE = regex.compile(r"(?s)(?:```.*?(?:```|\Z))|(?:`[^`\n]{1,400}`)")
_DEFINITION = regex.compile(r":\s*\S|\s*(?:<?https?://)")
_LINE_OPENS = regex.compile(r"\n[ \t*>#-]*$")
_ASSIGNED = regex.compile(r"\s?(?:=[^=]|\+=|\[\w*[^\W\d]|\.\w+\()")
_REFERENCES = regex.compile(
    r"(?im)^[^\S\n]{0,8}+[#*_]{0,6}+[^\S\n]{0,3}+[*_]{0,3}+"
    r"(?:references|sources|citations|bibliography|works cited|footnotes|quellen|literatur|références|fuentes|"
    r"参考文献)[ *_]{0,4}[:：]?[ *_]{0,4}\r?$"
)
_LAST_WORD = regex.compile(r"(?r)\w+$")
_CODE_NAMES = """arr array arrays list lst tuple dict row rows col cols data item items arg args argv num nums matrix
mat vec dp idx index value values result results str buf buffer tmp stack queue"""
_VARIABLES = frozenset(_CODE_NAMES.split())


def _names_variable(before: str) -> bool:
    """Tell whether the word just before a bracket looks like code: `arr[0]`, `my_list[2]`, `x[1]`."""
    last = _LAST_WORD.search(before)
    word = last[0] if last else ""
    return "_" in word or word.rstrip("0123456789") in _VARIABLES or (len(word) == 1 and "a" <= word <= "z")


def _normalize_digits(digits: str) -> str:
    """Write digits of any script in ASCII, without leading zeros: "０7" becomes "7"."""
    return str(int(digits))


def _parse_item(item: str, sources: Collection[str]) -> tuple[str, ...]:
    """Read the numbers that one comma-separated item of a mark cites; none if it cites nothing."""
    if item in sources:
        return (item,)
    if number := _NUMBER.match(item):
        return (_normalize_digits(number[1]),)
    if span := _RANGE.match(item):
        first, last = int(span[1]), int(span[2])
        if 0 <= last - first < RANGE_LIMIT:
            return tuple(str(n) for n in range(first, last + 1))
        return (str(first), str(last))
    return ()


def _parse_body(body: str, sources: Collection[str]) -> tuple[str, ...]:
    """Read the numbers that a bracket's content cites; none if the bracket is not a citation."""
    if body.strip() in sources:
        return (body.strip(),)
    items = [item.strip() for item in regex.split(r"[,;，、]|\band\b|&", _LABEL.sub("", body.strip()))]
    cited = [_parse_item(item, sources) for item in items]
    if not all(cited):
        return ()
    numbers = tuple(dict.fromkeys(number for group in cited for number in group))
    years = all(len(number) == 4 and number[0] in "12" for number in numbers)
    interval = len(numbers) > 1 and numbers[0] == "0"
    return () if (years or interval) and not any(number in sources for number in numbers) else numbers


def _is_citation(text: str, mark: regex.Match[str], numbers: tuple[str, ...], sources: Collection[str]) -> bool:
    """Tell whether a bracket may be a citation where it stands: no subscript, image, or reference list's entry."""
    start, end = mark.span()
    before = text[max(0, start - 24) : start]
    opens_line = _LINE_OPENS.search(before) if start > 24 else _LINE_OPENS.search("\n" + before)
    if opens_line and _DEFINITION.match(text, end):
        return False
    if before.endswith("!") and text[end : end + 1] == "(":
        return False
    if before.rstrip().endswith("="):
        return False
    if not before or not (before[-1].isalnum() or before[-1] in "_)]"):
        return True
    if before[-1] == "]":  # [1][2]
        return True
    if _names_variable(before) or (numbers == ("0",) and "0" not in sources):
        return False
    return all(number in sources for number in numbers) or not _ASSIGNED.match(text, end)


def _excluded_parts(text: str) -> list[Part]:
    """Find code, and everything after a heading such as "References:"."""
    parts = [Part(*match.span()) for match in _CODE.finditer(text)] if "`" in text else []
    # Only the last such heading opens a reference list; an earlier one may head a section of prose.
    headings = list(_REFERENCES.finditer(text))
    if headings:
        parts.append(Part(headings[-1].end(), len(text)))
    return sorted(parts)


def citations(text: str, *, sources: Collection[str] = (), parentheses: bool = False) -> tuple[Citation, ...]:
    """Find every citation mark, in order. A mark with one of the numbers in `sources` always counts."""
    sources = frozenset(sources)
    parsed: dict[str, tuple[str, ...]] = {}  # answers repeat their marks
    excluded = _excluded_parts(text)
    starts = [part.start for part in excluded]
    marks: list[Citation] = []
    for mark in _MARK.finditer(text):
        if _PAIRS[mark["open"]] != mark["close"] or (mark["open"] == "(" and not parentheses):
            continue
        body = mark["body"]
        if body not in parsed:
            parsed[body] = _parse_body(body, sources)
        numbers = parsed[body]
        place = bisect_right(starts, mark.start()) - 1
        inside = place >= 0 and mark.start() < excluded[place].end
        if numbers and not inside and _is_citation(text, mark, numbers, sources):
            marks.append(Citation(mark.start(), mark.end(), numbers))
    return tuple(marks)


def attribute_citations(
    text: str, *, sources: Collection[str] = (), parentheses: bool = False
) -> tuple[CitedSentence, ...]:
    """Find every sentence with its marks. In `A. [1] B. [2]` the [1] belongs to A: the splitter keeps it there."""
    marks = citations(text, sources=sources, parentheses=parentheses)
    result: list[CitedSentence] = []
    position = 0
    for part in sentences(text):
        while position < len(marks) and marks[position].start < part.start:
            position += 1
        first = position
        while position < len(marks) and marks[position].start < part.end:
            position += 1
        result.append(CitedSentence(part.start, part.end, marks[first:position]))
    return tuple(result)


def without_marks(text: str, sentence: CitedSentence) -> str:
    """Remove a sentence's marks, so that "[1]" does not take part in comparisons."""
    pieces, position = [], sentence.start
    for mark in sentence.citations:
        pieces.append(text[position : mark.start].rstrip())
        position = mark.end
    return "".join([*pieces, text[position : sentence.end]]).strip()
