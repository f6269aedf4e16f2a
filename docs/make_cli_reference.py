"""Writes the command line's reference into the README, from the parser itself: `make docs`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- cli:begin -->", "<!-- cli:end -->"
# argparse asks these how wide and how colourful its reader is. Ours is a page.
READER = {"COLUMNS": "100", "NO_COLOR": "1"}


def parser() -> ArgumentParser:
    sys.path.insert(0, str(ROOT))
    from calibrate.cli.parser import build

    return build()


def verbs(of: ArgumentParser) -> dict[str, ArgumentParser]:
    """Every verb by name, in the order of `--help`."""
    return next(dict(action.choices) for action in of._actions if isinstance(action, _SubParsersAction))


def reference() -> str:
    """The part of the README between the markers."""
    whole = {name: os.environ[name] for name in os.environ if name not in ("FORCE_COLOR", "PYTHON_COLORS")}
    with mock.patch.dict(os.environ, whole | READER, clear=True):
        return "\n".join(_blocks(parser()))


def _blocks(whole: ArgumentParser) -> Iterator[str]:
    yield _block(whole)
    for name, verb in verbs(whole).items():
        yield f"### {name}\n\n{_block(verb)}"


def _block(of: ArgumentParser) -> str:
    text = "\n".join(line.rstrip() for line in of.format_help().strip().splitlines())
    return f"```text\n{text}\n```\n"


def placed(readme: str, part: str) -> str:
    """The README with `part` between the markers. Raises ValueError when it has not exactly one pair of them."""
    if readme.count(BEGIN) != 1 or readme.count(END) != 1 or readme.index(BEGIN) > readme.index(END):
        raise ValueError(f"{README.name} should have {BEGIN} and then {END}, once each")
    before, _, rest = readme.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{part}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    found = README.read_text(encoding="utf-8")
    made = placed(found, reference())
    if made != found:
        README.write_text(made, encoding="utf-8")
    print(f"{README.name}: the command line's reference was {'up to date' if made == found else 'written anew'}")
