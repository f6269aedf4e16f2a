"""Verbs about detectors, their models and their runs."""

from __future__ import annotations

from calibrate.cli.grammar import Once, Verbs, add_scope, add_verb


def add(verbs: Verbs) -> None:
    add_verb(verbs, "detectors", "list the detectors, what each needs, and its default parameters")

    verb = add_verb(verbs, "models", "list the models behind detectors, and fetch or verify them")
    verb.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "pull", "verify"),
        help="list (default); pull NAME from the hub; verify: read the files and compare their digests",
    )
    verb.add_argument("name", nargs="?", metavar="NAME", help="pull: nli, embedder, or a hub id like organisation/name")

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

    verb = add_verb(verbs, "scores", "export every score, with gold, status and configuration, for your own analysis")
    verb.add_argument("direction", choices=("export",))
    verb.add_argument("file", metavar="FILE", help="its ending says what it is: .csv, .parquet or .jsonl")
    verb.add_argument(
        "--detector", action="append", metavar="NAME", help="default: every detector that has scores; may be repeated"
    )
    verb.add_argument("--sample", action=Once, metavar="NAME", help="its members (default: every trace with a score)")
    verb.add_argument("--param", action="append", default=[], metavar="K=V", help="the parameters it was run with")
    verb.add_argument("--force", action="store_true", help="replace an existing file")

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

    verb = add_verb(verbs, "files", "show or replace the team's own prompts, lists of refusals and prices")
    verb.add_argument("action", nargs="?", default="list", choices=("list", "show", "set", "reset"))
    verb.add_argument("name", nargs="?", metavar="NAME", help="like prompts/judge_yes_no.txt or prices.csv")
    verb.add_argument("file", nargs="?", metavar="FILE", help="set: the text to save, UTF-8")

    verb = add_verb(verbs, "worker", "carry out the runs that wait in the store, then end")
    verb.add_argument("--run", type=int, metavar="ID", help="only this run")
    verb.add_argument("--wait", action="store_true", help="stay, and carry out every run that comes, until Ctrl-C")
