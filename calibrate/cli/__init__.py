"""The command line: every step of the loop without the pages. A verb's module is imported when the verb is called."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from calibrate.cli.grammar import build
from calibrate.cli.output import to_json
from calibrate.cli.signals import exit_code, signals_as_interrupts
from calibrate.errors import Forbidden, TouchstoneError, Unavailable
from calibrate.settings import hide_secrets

IN_THE_WHEEL = ("verify", "decide")  # the verbs that need no more than production installs
# The verbs that save as they go: what they had done when somebody pressed Ctrl-C is in the store.
SAVES_AS_IT_GOES = {
    "alternatives", "demo", "detect", "import", "pull", "purge", "recalibrate", "watch", "weekly", "worker",
}  # fmt: skip

# Verbs whose codes 1 and 2 are answers: whatever goes wrong there exits with this one.
BROKEN = {"gate": 3}


@dataclass(frozen=True)
class Answer:
    """What a verb prints: one JSON object or the same as text, and the exit code."""

    document: object  # a dataclass, or a mapping
    text: str
    exit_code: int = 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code: 0 done, 2 bad input, 1 failure, 130 stopped with Ctrl-C, 143 with SIGTERM.
    Verbs in BROKEN have their own.

    An error is one sentence, never a traceback.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in words
    try:
        with signals_as_interrupts():
            answer = _call(build().parse_args(words))
        print(to_json(answer.document) if as_json else answer.text, flush=True)
        return answer.exit_code
    except TouchstoneError as error:
        return _fail(str(error), BROKEN.get(_verb(words), error.exit_code), as_json=as_json, words=words)
    except KeyboardInterrupt as stop:
        saved = str(stop) or ("what was done so far is kept" if _verb(words) in SAVES_AS_IT_GOES else "")
        return _fail(f"stopped; {saved}" if saved else "stopped", exit_code(stop), as_json=as_json, words=words)
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN.get(_verb(words), 1)
    except Exception as error:
        if os.environ.get("TOUCHSTONE_TRACEBACK"):
            raise
        problem = f"this should not happen: {type(error).__name__}: {error} (TOUCHSTONE_TRACEBACK=1 shows where)"
        return _fail(problem, BROKEN.get(_verb(words), 1), as_json=as_json, words=words)


def _verb(words: Sequence[str]) -> str:
    return next((word for word in words if not word.startswith("-")), "")


def _call(args: Namespace) -> Answer:
    if args.verb not in IN_THE_WHEEL and find_spec("db") is None:
        raise Unavailable(
            f"`{args.verb}` needs the workbench, which is not installed here: get Touchstone's source, "
            f"run `make setup` in its folder, and there `.venv/bin/python -m calibrate {args.verb}`"
        )
    module = "import_traces" if args.verb == "import" else args.verb  # `import` is a word of Python's
    try:
        answer = importlib.import_module(f"calibrate.cli.{module}").run(args)
    except Forbidden as error:
        importlib.import_module("calibrate.cli.common").note_refusal(args, error)
        raise
    assert isinstance(answer, Answer)
    return answer


def _fail(message: str, code: int, *, as_json: bool, words: Sequence[str]) -> int:
    message = hide_secrets(message, words)
    with contextlib.suppress(OSError):  # a full disk behind standard output must not hide what went wrong
        if as_json:
            print(to_json({"error": message}), flush=True)
    print(f"touchstone: {message}", file=sys.stderr)
    return code
