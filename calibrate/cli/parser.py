"""The grammar of the command line, and nothing else: `--help` must not load the product."""

from __future__ import annotations

import sys
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter, _SubParsersAction
from pathlib import Path
from typing import NoReturn

from calibrate import __version__
from calibrate.errors import BadInput

# The console script is installed with the wheel; the workbench runs from its folder.
PROGRAM = "touchstone" if Path(sys.argv[0]).stem == "touchstone" else "python -m calibrate"
EPILOG = """\
The loop, once a week:  import → sample → labels → detect → sweep → choose → release
Every verb takes --store URL (default: TOUCHSTONE_STORE, else sqlite:///touchstone.db) and --json (one JSON object on
standard output). Exit codes: 0 done, 2 bad input (what of it is good may be in the store: the answer says so),
1 failure, 130 stopped with Ctrl-C.
"""


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """A wrong call is bad input like any other: one sentence, or one JSON object."""
        raise BadInput(f"{message}; `{self.prog} --help` shows how")


def build() -> ArgumentParser:
    """The parser. A parsed verb carries `module` and `function`: calibrate.cli.<module>.<function>(args)."""
    parser = _Parser(
        prog=PROGRAM,
        description="Find out where to set the thresholds of hallucination detectors, and how sure you may be.",
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help=SUPPRESS)  # before the verb as well
    parser.add_argument("--version", action="version", version=f"touchstone {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _data(verbs)
    _detectors(verbs)
    _thresholds(verbs)
    return parser


def _data(verbs: _SubParsersAction[_Parser]) -> None:
    verb = _verb(verbs, "demo", "data.demo", "fill an empty store with the sample traces that come with Touchstone")

    verb = _verb(verbs, "import", "data.import_files", "take traces in: JSONL (.gz too), CSV or Parquet")
    verb.add_argument("files", nargs="+", metavar="FILE")
    verb.add_argument("--format", default="auto", choices=("auto", "jsonl", "csv", "parquet"))
    verb.add_argument(
        "--column", action="append", default=[], metavar="FIELD=COLUMN", help="CSV, Parquet: which column"
    )
    verb.add_argument("--labels-as", metavar="NAME", help="keep the labels in the file as this labeller's")
    verb.add_argument("--strict", action="store_true", help="refuse a file with a bad line instead of leaving it out")

    verb = _verb(verbs, "traces", "data.traces", "list traces, newest first")
    verb.add_argument("--since", default="all", help="14d, 12h, 2026-11-01 or all (default)")
    verb.add_argument("--limit", type=int, default=20, metavar="N")
    verb.add_argument("--text", help="only traces with this in question or answer")
    verb.add_argument("--label", default="any", help="any, unlabelled, labelled, clean, hallucinated, unsure, disputed")

    verb = _verb(verbs, "sample", "data.sample", "draw traces for labelling and keep how they were drawn")
    verb.add_argument("name", metavar="NAME", nargs="?", help="default: the ISO week, like 2026-W47")
    verb.add_argument("--size", type=int, default=300, metavar="N")
    verb.add_argument(
        "--design",
        default="auto",
        choices=("auto", "random", "stratified", "octave", "uncertain", "fresh-flagged"),
        help="auto (default): octave once half of the window has scores, else random",
    )
    verb.add_argument("--by", metavar="ATTR", help="stratified: model, operation or an attribute")
    verb.add_argument(
        "--cut", metavar="DETECTOR=T", help="uncertain, fresh-flagged: the threshold to be near to, or flagged at"
    )
    verb.add_argument("--list", action="store_true", help="draw nothing; list the members of the sample NAME")
    verb.add_argument("--more", type=int, metavar="N", help="top up the sample NAME by so many, from what it was drawn")
    verb.add_argument(
        "--plan", type=float, metavar="W", help="draw nothing; say how many labels make a precision known to ±W"
    )
    verb.add_argument("--precision", type=float, default=0.7, metavar="P", help="plan: around which (default 0.7)")
    verb.add_argument("--since", default="14d", help="14d (default), 2026-11-01, or all, which lets undated traces in")
    verb.add_argument("--seed", type=int, help="draw alike again from the same store (default: a new seed)")

    verb = _verb(verbs, "labels", "data.labels", "bring labels in from a file, or write them to one (JSONL or CSV)")
    verb.add_argument("direction", choices=("import", "export"))
    verb.add_argument("file", metavar="FILE")
    verb.add_argument("--sample", metavar="NAME", help="export: only the labels of this sample")
    verb.add_argument("--labels-as", metavar="NAME", help="import: the labeller, for lines that name none")
    verb.add_argument("--force", action="store_true", help="export: replace a file that is there already")

    verb = _verb(verbs, "agreement", "agreeing.agreement", "how far labellers agree, and labels to look at twice")
    verb.add_argument(
        "action",
        nargs="?",
        default="show",
        choices=("show", "adjudicate", "second-look", "double"),
        help="show (default), decide a trace, list labels most likely wrong, draw traces to label twice",
    )
    verb.add_argument("trace", nargs="?", metavar="TRACE_ID", help="adjudicate: which one")
    verb.add_argument("--sample", metavar="NAME", help="default: every labelled trace")
    verb.add_argument("--verdict", choices=("clean", "hallucinated", "unsure"), help="adjudicate: its gold from now on")
    verb.add_argument("--note", metavar="TEXT", help="adjudicate: why")
    verb.add_argument("--limit", type=int, default=20, metavar="N", help="second-look: how many (default 20)")
    verb.add_argument("--size", type=int, default=100, metavar="N", help="double: how many (default 100)")
    verb.add_argument("--name", metavar="NAME", help="double: of the sample drawn (default: SAMPLE-double)")
    verb.add_argument("--seed", type=int, help="double: draw the same traces again")


def _detectors(verbs: _SubParsersAction[_Parser]) -> None:
    _verb(verbs, "detectors", "detecting.detectors", "what detectors there are, what each needs, default parameters")

    verb = _verb(verbs, "models", "models.models", "the models behind detectors: what is here, and how to get the rest")
    verb.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "pull", "verify"),
        help="list (default); pull NAME from the hub; verify: read the files and compare their digests",
    )
    verb.add_argument("name", nargs="?", metavar="NAME", help="pull: nli, embedder, or a hub id like organisation/name")

    verb = _verb(
        verbs, "detect", "detecting.detect", "score traces with detectors; what is scored already is not done again"
    )
    verb.add_argument("detectors", nargs="+", metavar="DETECTOR", help="names, or all")
    where = verb.add_mutually_exclusive_group()
    where.add_argument("--sample", metavar="NAME")
    where.add_argument("--labelled", action="store_true", help="every labelled trace (default)")
    where.add_argument("--all", action="store_true", dest="everything", help="every trace of the store")
    verb.add_argument("--param", action="append", default=[], metavar="K=V", help="a parameter, like variant=plain")
    verb.add_argument("--budget", type=float, metavar="USD", help="stop asking a chat endpoint at this cost")
    verb.add_argument("--estimate", action="store_true", help="say what it would take, and neither score nor send")

    verb = _verb(verbs, "baselines", "baselines.baselines", "what each model's clean answers look like to entropy_z")
    verb.add_argument("action", nargs="?", default="list", choices=("fit", "list"), help="list (default), or fit anew")

    verb = _verb(
        verbs,
        "alternatives",
        "alternatives.alternatives",
        "draw further answers from the chat endpoint, to compare with",
    )
    where = verb.add_mutually_exclusive_group()
    where.add_argument("--sample", metavar="NAME")
    where.add_argument("--labelled", action="store_true", help="every labelled trace (default)")
    where.add_argument("--all", action="store_true", dest="everything", help="every trace of the store")
    verb.add_argument("--n", type=int, default=5, metavar="N", help="answers for each trace (default 5)")
    verb.add_argument("--temperature", type=float, default=1.0, metavar="T", help="above 0, up to 2 (default 1)")
    verb.add_argument(
        "--max-tokens", type=int, metavar="N", help="of each answer (default: by the logged one's length)"
    )
    verb.add_argument("--budget", type=float, metavar="USD", help="stop asking at this cost")
    verb.add_argument("--estimate", action="store_true", help="say what it would cost at most, and send nothing")

    verb = _verb(verbs, "files", "files.files", "the team's own prompts, lists of refusals and prices")
    verb.add_argument("action", nargs="?", default="list", choices=("list", "show", "set", "reset"))
    verb.add_argument("name", nargs="?", metavar="NAME", help="like prompts/judge_yes_no.txt or prices.csv")
    verb.add_argument("file", nargs="?", metavar="FILE", help="set: the text to save, UTF-8")

    verb = _verb(verbs, "worker", "detecting.worker", "carry out runs that wait in the store, then end")
    verb.add_argument("--run", type=int, metavar="ID", help="only this run")


def _thresholds(verbs: _SubParsersAction[_Parser]) -> None:
    verb = _verb(verbs, "sweep", "tuning.sweep", "precision and recall of a detector at every threshold")
    _scores(verb)

    verb = _verb(verbs, "choose", "tuning.choose", "the operating point that a policy chooses")
    _scores(verb)
    verb.add_argument(
        "--policy",
        default="precision>=0.7",
        help='"precision>=0.7" (default), "recall>=0.9", f1, f-beta:BETA, cost:fa=1,miss=20, "alerts<=20/day", elbow, '
        "manual:THRESHOLD",
    )
    verb.add_argument(
        "--strength",
        default="measured",
        choices=("measured", "bounded", "certified"),
        help="of a precision: measured on these labels (default), bounded by them, or as `certify` proved it",
    )
    verb.add_argument("--save", action="store_true", help="keep the point: it is then on offer for release")

    verb = _verb(verbs, "compare", "tuning.compare", "curves side by side, and whether they differ beyond chance")
    verb.add_argument("detectors", nargs="+", metavar="DETECTOR")
    verb.add_argument(
        "--by",
        default="detectors",
        choices=("detectors", "settings", "models", "samples"),
        help="what differs: detectors (default), or of one detector its settings, the models that answered, the weeks",
    )
    verb.add_argument("--sample", action="append", metavar="NAME", help="default: all labels, or every sample")

    verb = _verb(verbs, "scoreboard", "scoring.scoreboard", "every detector on the same labels, beside the baselines")
    verb.add_argument("--sample", metavar="NAME", help="default: every labelled trace")
    verb.add_argument("--csv", metavar="FILE", help="write the table to this file as well")
    verb.add_argument("--force", action="store_true", help="--csv: replace a file that is there already")

    verb = _verb(verbs, "probability", "scoring.probability", "what a score says in percent, and how far to trust that")
    _scores(verb)
    verb.add_argument("--save", action="store_true", help="keep the map with the detector's saved operating point")

    _ensemble(_verb(verbs, "ensemble", "ensembling.ensemble", "several detectors as one, beside the best alone"))

    verb = _verb(verbs, "certify", "certifying.certify", "prove a threshold's precision on fresh labels, step by step")
    _scores(verb)
    verb.add_argument("--target", type=float, metavar="P", help="the precision to certify (default 0.7)")
    verb.add_argument("--labels", type=int, metavar="N", help="fresh labels it may cost (default: 1.5 a first one)")
    verb.add_argument("--seed", type=int, help="plan and draw alike again (default: a new seed)")
    verb.add_argument("--fewer", action="store_true", help="draw what fresh traces there are, if fewer than planned")
    verb.add_argument("--save", action="store_true", help="keep the certified point: it is then on offer for release")

    verb = _verb(verbs, "release", "releasing.release", "make the saved operating points the next version")
    verb.add_argument("detectors", nargs="*", metavar="DETECTOR", help="default: every detector with a saved point")
    verb.add_argument("--out", metavar="FILE", help="the thresholds file, replaced atomically; or a URL like s3://…")
    verb.add_argument("--note", default="", metavar="TEXT", help="why, for the history")
    verb.add_argument(
        "--reason", default="", metavar="TEXT", help="why a point may be worse than the live one on the same labels"
    )
    verb.add_argument(
        "--ensemble", action="append", default=[], metavar="NAME", help="a saved ensemble that comes in too; repeatable"
    )
    verb.add_argument(
        "--tier", action="append", default=[], metavar="NAME=TIER",
        help="page, signal or off (default: as in the live release; what is new is signal, a new ensemble page)",
    )  # fmt: skip
    other = verb.add_mutually_exclusive_group()
    other.add_argument("--again", type=int, metavar="VERSION", help="write a version anew to --out; release nothing")
    about = "release an earlier version as the next one; its points are on offer again"
    other.add_argument("--rollback", type=int, metavar="VERSION", help=about)
    other.add_argument("--proposals", action="store_true", help="list what waits for a second person")
    other.add_argument("--approve", type=int, metavar="ID", help="release what somebody else proposed")
    other.add_argument("--decline", type=int, metavar="ID", help="turn a proposal down, or take your own back")

    verb = _verb(verbs, "verify", "verify.verify", "check a thresholds file: format, digest, fields")
    verb.add_argument("file", metavar="FILE")

    verb = _verb(verbs, "decide", "decide.decide", "what a runtime would decide from scores")
    verb.add_argument("file", metavar="FILE")
    verb.add_argument(
        "--scores", required=True, metavar="SCORES.json", help='{"detector": score or null, …}; - for stdin'
    )

    _production(verbs)
    _recalibrating(verbs)

    verb = _verb(verbs, "drift", "drifting.drift", "whether scores moved since the release, by detector and model")
    verb.add_argument(
        "--since", default=None, metavar="WHEN", help="the live window: 7d, 2026-11-01 (default: release)"
    )
    verb.add_argument("--release", type=int, metavar="N", help="compare with this one (default: the newest)")
    verb.add_argument("--seed", type=int, default=0, help="which traces of a large window are compared (default 0)")

    verb = _verb(verbs, "recheck", "drifting.recheck", "label flagged traces until it is known if a threshold holds")
    verb.add_argument("detector", metavar="DETECTOR")
    verb.add_argument("--target", type=float, metavar="P", help="the precision to hold (default: what was released)")
    verb.add_argument("--labels", type=int, metavar="N", help="flagged traces to draw at a time (default 60)")
    verb.add_argument("--model", metavar="MODEL", help="only the traffic of this model (default: all)")
    verb.add_argument("--release", type=int, metavar="N", help="of this one (default: the newest)")
    verb.add_argument("--seed", type=int, help="draw the same traces again (default: a new seed)")
    verb.add_argument("--again", action="store_true", help="begin another when the last one is decided")

    verb = _verb(verbs, "simulate", "simulating.simulate", "measure what the statistics promise, where truth is known")
    verb.add_argument(
        "--replications", type=int, default=200, metavar="N", help="per scenario, 50 at least (default 200)"
    )
    verb.add_argument("--labels", type=int, default=300, metavar="N", help="that a certificate may cost (default 300)")
    verb.add_argument("--seed", type=int, help="default: always the same, and so the same table")
    verb.add_argument("--drift", action="store_true", help="only what `drift` and `recheck` promise")


def _production(verbs: _SubParsersAction[_Parser]) -> None:
    verb = _verb(verbs, "watch", "watching.watch", "score new traces as they come in, decide and raise alerts")
    verb.add_argument("--file", metavar="FILE", help="decide by this release (default: always the newest)")
    verb.add_argument("--every", type=float, default=30.0, metavar="SECONDS", help="look for new traces (default 30)")
    verb.add_argument("--once", action="store_true", help="decide what there is, then end")
    verb.add_argument("--since", default="14d", help="14d (default), 2026-11-01, or all, which lets undated traces in")
    verb.add_argument(
        "--alerts", metavar="URL", help="tell this webhook of flags; a secret, so better TOUCHSTONE_ALERTS_WEBHOOK"
    )
    verb.add_argument(
        "--trace-url", metavar="TEMPLATE", help="link in alerts, like https://touchstone.example/traces?trace={id}"
    )

    verb = _verb(verbs, "serve", "serving.serve", "serve releases over HTTP, read-only, for runtimes to load")
    verb.add_argument("--host", default="127.0.0.1", help="default 127.0.0.1: this machine only")
    verb.add_argument("--port", type=int, default=8502, help="default 8502; 0 takes a free one")


def _recalibrating(verbs: _SubParsersAction[_Parser]) -> None:
    verb = _verb(verbs, "seen", "recalibrating.seen", "models in the traces: since when, how much, how often wrong")
    verb.add_argument("--by", default="model", metavar="ATTR", help="model (default) or an attribute: prompt_version")
    about = "labels of this sample, by its design (default: every label); again to merge samples"
    verb.add_argument("--sample", action="append", metavar="NAME", help=about)

    verb = _verb(verbs, "recalibrate", "recalibrating.recalibrate", "after an upgrade: thresholds anew, and released")
    verb.add_argument(
        "--policy", default="same", metavar="POLICY", help="same (default): each detector's own; or one for all"
    )
    verb.add_argument(
        "--dry-run",
        action="store_true",
        help="run what is missing, keep its scores, say what would change, release nothing",
    )
    verb.add_argument("--out", metavar="FILE", help="also write the release to this thresholds file")
    verb.add_argument("--note", default="", metavar="TEXT", help="why, for the history")
    verb.add_argument("--reason", default="", metavar="TEXT", help="needed where a point is worse than the live one")
    verb.add_argument("--sample", action="append", metavar="NAME", help="default: the newest labels, or the release's")
    verb.add_argument("--param", action="append", default=[], metavar="K=V", help="default: as in the release")
    verb.add_argument("--budget", type=float, metavar="USD", help="stop asking a chat endpoint at this cost")

    verb = _verb(verbs, "weekly", "recalibrating.weekly", "the week's mechanical part, for cron")
    verb.add_argument("--out", metavar="REPORT.html", help="write the drift report here, one file with its charts")
    verb.add_argument("--size", type=int, default=300, metavar="N", help="of the week's sample (default 300)")


def _ensemble(verb: ArgumentParser) -> None:
    kinds = ("list", "k_of_n", "logistic", "cascade")
    verb.add_argument("kind", choices=kinds, metavar="KIND", help=f"{', '.join(kinds[1:])}; or list, what is saved")
    verb.add_argument("detectors", nargs="*", metavar="DETECTOR", help="default: the four that rank best")
    verb.add_argument("--k", type=int, default=2, metavar="K", help="k_of_n: how many must flag (default 2; 1: any)")
    verb.add_argument("--last", metavar="DETECTOR", help="cascade: the expensive one (default: the costliest)")
    verb.add_argument(
        "--pass", type=float, default=0.3, metavar="SHARE", dest="pass_share", help="cascade: what it sees"
    )
    verb.add_argument("--thresholds", default="equal", choices=("equal", "saved"), help="k_of_n: of each detector")
    verb.add_argument("--budget", type=float, default=0.05, metavar="SHARE", help="of traffic to flag (default 0.05)")
    verb.add_argument("--sample", metavar="NAME", help="default: every labelled trace")
    verb.add_argument("--save", metavar="NAME", help="keep it under this name")


def _scores(verb: ArgumentParser) -> None:
    verb.add_argument("detector", metavar="DETECTOR")
    about = "default: every labelled trace; give it again to merge samples of separate windows"
    verb.add_argument("--sample", action="append", metavar="NAME", help=about)
    verb.add_argument("--param", action="append", default=[], metavar="K=V", help="the parameters it was run with")


def _verb(verbs: _SubParsersAction[_Parser], name: str, target: str, about: str) -> ArgumentParser:
    verb = verbs.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    module, _, function = target.partition(".")
    verb.set_defaults(verb=name, module=module, function=function)
    verb.add_argument("--store", metavar="URL", help="sqlite:///file.db or postgresql://…")
    verb.add_argument("--json", action="store_true", help="print one JSON object")
    return verb
