"""Writes docs/reference/cli.md, the command line's reference, from the parser itself: `make docs`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "cli.md"
# argparse asks these how wide and how colourful its reader is. Ours is a page.
READER = {"COLUMNS": "100", "NO_COLOR": "1"}
INTRODUCTION = """\
# Command line

`make docs` writes this page from the code; do not edit it. Run the commands in the root of the repository, with the
environment active (`source .venv/bin/activate`). With `--json`, every command prints one JSON object instead of text.
"""


def parser() -> ArgumentParser:
    sys.path.insert(0, str(ROOT))
    from calibrate.cli.grammar import build

    return build()


def verbs(whole: ArgumentParser) -> dict[str, ArgumentParser]:
    """Every verb by name, in the order of `--help`."""
    return next(dict(action.choices) for action in whole._actions if isinstance(action, _SubParsersAction))


def reference() -> str:
    """The whole page, the same whatever terminal it is made in."""
    environment = {name: os.environ[name] for name in os.environ if name not in ("FORCE_COLOR", "PYTHON_COLORS")}
    with mock.patch.dict(os.environ, environment | READER, clear=True):
        whole = parser()
        sections = [f"## {name}\n\n{_help(verb)}" for name, verb in verbs(whole).items()]
        return "\n".join([INTRODUCTION, _help(whole), *sections])


def _help(part: ArgumentParser) -> str:
    text = "\n".join(line.rstrip() for line in part.format_help().strip().splitlines())
    return f"```text\n{text}\n```\n"


if __name__ == "__main__":
    page = reference()
    changed = not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page
    if changed:
        PAGE.write_text(page, encoding="utf-8")
    print(f"docs/reference/{PAGE.name}: {'written anew' if changed else 'up to date'}")
