"""Verbs about detectors, their models and their runs."""

from __future__ import annotations

from typing import Literal

from calibrate.cli.grammar import Once, Verbs, add_scope, add_verb


def bound(text: str) -> float | Literal["none"]:
    """Read a lowest or highest value, or "none"."""
    return "none" if text.strip().lower() == "none" else float(text)


def add(verbs: Verbs) -> None:
    add_verb(verbs, "detectors", "list the detectors, what each needs, and its default parameters")

    verb = add_verb(verbs, "models", "list the models behind detectors, and fetch or verify them")
    verb.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "catalogue", "pull", "verify"),
        help="list (default); catalogue: groundedness models that can be added, or all of one; "
        "pull NAME from the hub; verify: read the files and compare their digests",
    )
    verb.add_argument(
        "name", nargs="?", metavar="NAME",
        help="pull: nli, embedder, a name of the catalogue, or a hub id like organisation/name; catalogue: one of it",
    )  # fmt: skip

    verb = add_verb(verbs, "detect", "score traces with detectors, except those that have a score already")
    verb.add_argument("detectors", nargs="*", metavar="DETECTOR", help="names, or all")
    add_scope(verb)
    verb.add_argument(
        "--list", action="store_true", help="say which can run, what the traces lack and what needs setup; run nothing"
    )
    verb.add_argument("--param", action="append", default=[], metavar="K=V", help="a parameter, like variant=plain")
    verb.add_argument("--budget", type=float, metavar="USD", help="stop asking a chat endpoint at this cost")
    verb.add_argument(
        "--again", choices=("failed",), help="only the traces on which the detector failed before; they are asked anew"
    )
    verb.add_argument("--estimate", action="store_true", help="estimate time and cost; score and send nothing")
    verb.add_argument(
        "--engine", choices=("auto", "local", "processes", "ray"),
        help="this process, worker processes, or a Ray cluster (default: TOUCHSTONE_ENGINE, else what pays)",
    )  # fmt: skip
    verb.add_argument("--workers", type=int, metavar="N", help="worker processes (default: one per processor)")
    verb.add_argument("--address", metavar="HOST:PORT", help="of the Ray cluster (default: RAY_ADDRESS)")

    verb = add_verb(verbs, "scores", "import scores that were computed elsewhere, or export every score for analysis")
    verb.add_argument(
        "action",
        choices=("import", "define", "remove", "list", "export"),
        help="import FILE as the scores of an external detector; define NAME: say which of its scores are suspicious; "
        "remove NAME, which never had a score; list the external detectors; "
        "export every score to FILE, with gold, status and configuration",
    )
    verb.add_argument(
        "file", nargs="?", metavar="FILE",
        help=".csv, .parquet or .jsonl; define, remove: the NAME of the external detector",
    )  # fmt: skip
    verb.add_argument(
        "--detector", action="append", metavar="NAME",
        help="import: whose scores they are; export: only these, may be repeated (default: every one with scores)",
    )  # fmt: skip
    verb.add_argument(
        "--flag-when", choices=("above", "below"), help="import, define: which scores are suspicious, high or low ones"
    )
    verb.add_argument("--unit", metavar="TEXT", help="import, define: what a score is, like 'share of claims'")
    verb.add_argument(
        "--low",
        type=bound,
        metavar="X",
        help="import, define: the lowest value of a score, or none",
    )
    verb.add_argument("--high", type=bound, metavar="X", help="import, define: the highest value, or none")
    verb.add_argument(
        "--revision", metavar="TEXT", help="import: what changed scores are kept under (default: the next number)"
    )
    verb.add_argument(
        "--column", action="append", default=[], metavar="FIELD=COLUMN",
        help="import: the column of trace_id, score, reason, question, answer or sources",
    )  # fmt: skip
    verb.add_argument(
        "--sample", action=Once, metavar="NAME", help="export: its members (default: every trace with a score)"
    )
    verb.add_argument("--param", action="append", default=[], metavar="K=V", help="export: the parameters of a run")
    verb.add_argument("--force", action="store_true", help="export: replace an existing file")

    verb = add_verb(verbs, "baselines", "fit or list what each model's clean answers look like to entropy_z")
    verb.add_argument("action", nargs="?", default="list", choices=("fit", "list"), help="list (default), or fit anew")

    verb = add_verb(verbs, "alternatives", "draw alternatives: other answers to the same questions")
    add_scope(verb)
    verb.add_argument("--n", type=int, default=5, metavar="N", help="answers per trace (default 5)")
    verb.add_argument("--temperature", type=float, default=1.0, metavar="T", help="above 0, up to 2 (default 1)")
    verb.add_argument(
        "--max-tokens", type=int, metavar="N", help="of each answer (default: by the logged answer's length)"
    )
    verb.add_argument("--budget", type=float, metavar="USD", help="stop asking at this cost")
    verb.add_argument("--estimate", action="store_true", help="estimate the highest cost; send nothing")

    verb = add_verb(verbs, "align", "make a judge's prompt from guidelines and labels, compare it, and save it")
    verb.add_argument(
        "action",
        choices=("propose", "compare", "save", "differences"),
        help="propose: print a prompt; compare: measure out of fold what it gains over the one in use; save: use it, "
        "and set its labels aside; differences: where judge and people differ most",
    )
    verb.add_argument("detector", metavar="DETECTOR", help="a judge, like judge_yes_no")
    verb.add_argument("--sample", action=Once, metavar="NAME", help="default: every label that counts")
    verb.add_argument("--examples", type=int, default=6, metavar="K", help="that the prompt quotes (default 6)")
    verb.add_argument("--out", metavar="FILE", help="propose: write the prompt to this file instead of printing it")
    verb.add_argument(
        "--recall",
        type=float,
        metavar="SHARE",
        help="compare: where precision is compared (default: that released, else 0.7)",
    )
    verb.add_argument("--budget", type=float, metavar="USD", help="compare: stop asking a chat endpoint at this cost")
    verb.add_argument("--estimate", action="store_true", help="compare: say what it would ask and cost; send nothing")
    verb.add_argument(
        "--reason", default="", metavar="TEXT", help="save: why one that is not shown to judge better shall be saved"
    )
    verb.add_argument("--limit", type=int, default=20, metavar="N", help="differences: how many (default 20)")

    verb = add_verb(verbs, "files", "show or replace the team's own prompts, lists of refusals and prices")
    verb.add_argument("action", nargs="?", default="list", choices=("list", "show", "set", "reset"))
    verb.add_argument("name", nargs="?", metavar="NAME", help="like prompts/judge_yes_no.txt or prices.csv")
    verb.add_argument("file", nargs="?", metavar="FILE", help="set: the text to save, UTF-8")

    verb = add_verb(verbs, "worker", "carry out the runs that wait in the store, then end")
    verb.add_argument("--run", type=int, metavar="ID", help="only this run")
    verb.add_argument("--wait", action="store_true", help="stay, and carry out every run that comes, until Ctrl-C")
