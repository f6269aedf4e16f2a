"""The grammar of the command line, and nothing else: `--help` must not load the product."""

from __future__ import annotations

import sys
from argparse import (
    SUPPRESS,
    Action,
    ArgumentError,
    ArgumentParser,
    Namespace,
    RawDescriptionHelpFormatter,
    _SubParsersAction,
)
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from calibrate import __version__
from calibrate.errors import BadInput

# The console script comes with the wheel; the workbench runs from its folder.
PROGRAM = "touchstone" if Path(sys.argv[0]).stem == "touchstone" else "python -m calibrate"
EPILOG = """\
The loop, once a week:  import → sample → labels → detect → sweep → choose → release
Every verb takes --store URL (default: TOUCHSTONE_STORE, else sqlite:///touchstone.db) and --json (print one JSON
object). Exit codes: 0 done; 2 bad input (the answer says which part of it was stored); 1 failure; 130 stopped with
Ctrl-C, 143 by SIGTERM (the answer says what is kept). Those of `gate` are in its own --help.
"""


class Parser(ArgumentParser):
    def _match_arguments_partial(self, actions: Sequence[Action], arg_strings_pattern: str) -> list[int]:
        """Leave an optional word for later where one stands behind the next option: `scores export --force FILE`.
        Python does that itself from 3.12.7 on."""
        counts = super()._match_arguments_partial(actions, arg_strings_pattern)
        while counts and not counts[-1] and "A" in arg_strings_pattern[sum(counts) :]:
            counts.pop()
        return counts

    def error(self, message: str) -> NoReturn:
        """Treat a wrong call as bad input like any other: one sentence, or one JSON object."""
        raise BadInput(f"{message}; `{self.prog} --help` shows how")


Verbs: TypeAlias = "_SubParsersAction[Parser]"


def build() -> Parser:
    """Build the parser. A parsed call has its verb in `verb`: calibrate.cli.<verb>.run carries it out."""
    from calibrate.cli.grammar import detectors, production, thresholds, traces, upkeep

    parser = Parser(
        prog=PROGRAM,
        description="Find out where to set the thresholds of hallucination detectors, and how sure you may be.",
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help=SUPPRESS)  # accepted before the verb as well
    parser.add_argument("--version", action="version", version=f"touchstone {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for family in (traces, detectors, thresholds, production, upkeep):
        family.add(verbs)
    return parser


def add_verb(verbs: Verbs, name: str, about: str) -> Parser:
    """Add a verb with the two options that every verb takes."""
    verb = verbs.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    verb.set_defaults(verb=name)
    verb.add_argument("--store", metavar="URL", help="sqlite:///file.db or postgresql://…")
    verb.add_argument("--json", action="store_true", help="print one JSON object")
    return verb


class TraceFormats:
    """The names of the formats of trace files. They are looked up when one is given or listed, not at every start."""

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        from calibrate.ingest.formats import formats

        yield from ("auto", *(format.name for format in formats()))


class Once(Action):
    """Refuse an option that is given twice, where argparse would silently take the last."""

    def __call__(self, parser: ArgumentParser, args: Namespace, value: Any, option: str | None = None) -> None:
        if getattr(args, self.dest) is not None:
            raise ArgumentError(self, f"takes one name here, not {getattr(args, self.dest)!r} and {value!r}")
        setattr(args, self.dest, value)


def add_scope(verb: Parser) -> None:
    """Let a verb run on a sample, on the labelled traces or on all."""
    scope = verb.add_mutually_exclusive_group()
    scope.add_argument("--sample", action=Once, metavar="NAME")
    scope.add_argument("--labelled", action="store_true", help="every labelled trace (default)")
    scope.add_argument("--all", action="store_true", dest="everything", help="every trace of the store")


def add_on_missing(verb: Parser) -> None:
    """Let a verb say what becomes of an answer of which nothing could be scored."""
    verb.add_argument(
        "--on-missing",
        choices=("accept", "review", "reject"),
        default="review",
        help="verdict on an answer of which nothing could be scored (default review)",
    )


def add_evidence(verb: Parser) -> None:
    """Let a verb name the labels and scores that it works on."""
    verb.add_argument("detector", metavar="DETECTOR")
    verb.add_argument(
        "--sample",
        action="append",
        metavar="NAME",
        help="default: every labelled trace; repeat to merge samples of different windows",
    )
    verb.add_argument("--param", action="append", default=[], metavar="K=V", help="the parameters it was run with")
