"""Price chat requests: the price table that a team edits, and a guess of token counts."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

from calibrate.backends import files
from calibrate.errors import BadInput

FILE = "prices.csv"
HEAD = ["model", "prompt", "completion", "as_of"]


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens of the prompt and of the completion; `as_of` is the day when it was checked."""

    prompt: float
    completion: float
    as_of: date | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def price_of(model: str) -> Price | None:
    """Look up a model's price in the first matching line of `prices.csv`. None if no line matches or it has no price.

    Raises BadInput, naming the line, if the file is not a price table.
    """
    name = model.lower()
    return next((price for pattern, price in table(files.read(FILE)) if fnmatchcase(name, pattern)), None)


def table(text: str) -> list[tuple[str, Price | None]]:
    """Parse patterns, in lower case, with their prices, in order. Raises BadInput for an invalid line."""
    rows: list[tuple[str, Price | None]] = []
    head = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if head is None:
            head = cells
            if head != HEAD:
                raise _bad_line(number, f"the first line names the columns: {','.join(HEAD)}")
        elif len(cells) != len(HEAD) or not cells[0]:
            raise _bad_line(number, f"{len(cells)} fields; there are {len(HEAD)}: {', '.join(HEAD)}")
        else:
            rows.append((cells[0].lower(), _parse_price(number, cells)))
    if head is None:
        raise BadInput(f"{FILE} is empty; its first line names the columns: {','.join(HEAD)}")
    return rows


def _parse_price(number: int, cells: Sequence[str]) -> Price | None:
    _, prompt, completion, as_of = cells
    if prompt == completion == "none":
        return None
    try:
        day = date.fromisoformat(as_of) if as_of else None
    except ValueError as error:
        raise _bad_line(number, f"{as_of!r} is no day; write it like 2026-11-21") from error
    return Price(_parse_dollars(number, prompt), _parse_dollars(number, completion), day)


def _parse_dollars(number: int, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise _bad_line(number, f"{cell!r} is no price; write dollars per million tokens, like 0.15, or none for both")
    return value


def _bad_line(number: int, problem: str) -> BadInput:
    return BadInput(f"{FILE}, line {number}: {problem}")


def guess_tokens(texts: Sequence[str]) -> int:
    """Guess the tokens of a prompt of these texts: a quarter of its UTF-8 bytes, plus 4 for each message.

    Four letters of English are about a token; a Chinese character is three bytes and almost a token by itself.
    """
    return sum(4 + len(text.encode("utf-8", "surrogatepass")) // 4 for text in texts)
