"""Verbs for production and after a release: watch, serve, upgrades, drift."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter

from calibrate.cli.grammar import Verbs, add_on_missing, add_verb

GATE = """\
exit codes of this verb, unlike others:
  0  holds: no recall or precision dropped by more than it may (wrong at most 5% of the time)
  1  fell: one dropped by more than it may
  2  too few labels to tell; the answer says about how many more would
  3  broken: no answer, as of a file, a store, scores or options that cannot be used
"""


def _add_receiving(verb: ArgumentParser) -> None:
    verb.add_argument(
        "--open", action="store_true", help="take spans from anyone who reaches another host than this machine"
    )
    verb.add_argument(
        "--wait", type=float, default=5.0, metavar="SECONDS",
        help="how long a trace waits for further spans after its root has ended (default 5)",
    )  # fmt: skip
    verb.add_argument("--no-join", action="store_true", help="only receive: another `receive` imports")


def add(verbs: Verbs) -> None:
    verb = add_verb(verbs, "watch", "score and decide new traces as they come in, and send alerts")
    verb.add_argument("--file", metavar="FILE", help="decide by this release (default: always the newest)")
    verb.add_argument(
        "--every", type=float, default=30.0, metavar="SECONDS", help="how often to look for new traces (default 30)"
    )
    verb.add_argument("--once", action="store_true", help="decide the traces there are, then end")
    verb.add_argument("--since", default="14d", help="14d (default), 2026-11-01, or all, which includes undated traces")
    verb.add_argument(
        "--alerts", metavar="URL", help="send flags to this webhook; it is a secret: better TOUCHSTONE_ALERTS_WEBHOOK"
    )
    verb.add_argument(
        "--trace-url",
        metavar="TEMPLATE",
        help="link in alerts, like https://touchstone.example/traces?trace={id}, or http://jaeger/trace/{otel_trace}",
    )
    verb.add_argument(
        "--annotate", action="append", default=[], choices=("phoenix", "mlflow", "langfuse", "langsmith", "otel"),
        help="write every verdict and its scores to the system that the answer came from; repeat for several",
    )  # fmt: skip
    add_on_missing(verb)
    verb.add_argument(
        "--alive", metavar="FILE", help="touch this file whenever a look gets on or ends: by its age others see a hang"
    )
    verb.add_argument(
        "--status",
        action="store_true",
        help="decide nothing: say of every live threshold what it promised, what is known now, and what is due",
    )

    verb = add_verb(verbs, "serve", "serve releases over HTTP, read-only, for runtimes to load")
    verb.add_argument("--host", default="127.0.0.1", help="default 127.0.0.1: this machine only")
    verb.add_argument("--port", type=int, default=8502, help="default 8502; 0 takes a free one")
    verb.add_argument("--receive", action="store_true", help="also take in spans, as the verb `receive` does")
    _add_receiving(verb)

    verb = add_verb(verbs, "receive", "take in spans over OTLP/HTTP, from any OpenTelemetry SDK or Collector")
    verb.add_argument("--host", default="127.0.0.1", help="default 127.0.0.1: this machine only")
    verb.add_argument("--port", type=int, default=4318, help="default 4318, as OTLP has it; 0 takes a free one")
    _add_receiving(verb)
    verb.add_argument("--only-join", action="store_true", help="listen to nobody: import what others receive")

    verb = add_verb(verbs, "audit", "list who did what to this store, the newest first")
    verb.add_argument("--who", metavar="NAME", help="only what this person did")
    verb.add_argument("--did", metavar="VERB", help='only this, like "point saved" or "refused"')
    verb.add_argument("--limit", type=int, default=50, metavar="N", help="at most so many (default 50)")

    verb = add_verb(verbs, "seen", "list the models in the traces: since when, how many, how often wrong")
    verb.add_argument("--by", default="model", metavar="ATTR", help="model (default) or an attribute: prompt_version")
    verb.add_argument(
        "--sample",
        action="append",
        metavar="NAME",
        help="labels of this sample, weighted by its design (default: every label); repeat to merge samples",
    )

    verb = add_verb(verbs, "recalibrate", "choose all thresholds again after an upgrade, and release them")
    verb.add_argument(
        "--policy", default="same", metavar="POLICY", help="same (default): each detector's own; or one for all"
    )
    verb.add_argument(
        "--dry-run", action="store_true", help="run and save missing scores, say what would change, release nothing"
    )
    verb.add_argument("--out", metavar="FILE", help="also write the release to this thresholds file")
    verb.add_argument("--note", default="", metavar="TEXT", help="why, for the history")
    verb.add_argument("--reason", default="", metavar="TEXT", help="needed where a point is worse than the live one")
    verb.add_argument("--sample", action="append", metavar="NAME", help="default: the newest labels, or the release's")
    verb.add_argument("--param", action="append", default=[], metavar="K=V", help="default: as in the release")
    verb.add_argument("--budget", type=float, metavar="USD", help="stop asking a chat endpoint at this cost")

    verb = add_verb(verbs, "weekly", "do the mechanical part of the week, for cron")
    verb.add_argument("--out", metavar="REPORT.html", help="write the drift report here, one file with its charts")
    verb.add_argument("--size", type=int, default=300, metavar="N", help="of the week's sample (default 300)")
    verb.add_argument("--by", metavar="ATTR", help="tell the weekly rate by model, operation or an attribute")

    verb = add_verb(verbs, "drift", "test whether scores moved since the release, by detector and model")
    verb.add_argument(
        "--since", default=None, metavar="WHEN", help="the live window: 7d, 2026-11-01 (default: since the release)"
    )
    verb.add_argument("--release", type=int, metavar="N", help="compare with this one (default: the newest)")
    verb.add_argument("--seed", type=int, default=0, help="which traces of a large window are compared (default 0)")

    verb = add_verb(verbs, "recheck", "label flagged traces until it is clear whether a threshold holds")
    verb.add_argument("detector", metavar="DETECTOR")
    verb.add_argument("--target", type=float, metavar="P", help="the precision to hold (default: what was released)")
    verb.add_argument("--labels", type=int, metavar="N", help="flagged traces to draw at a time (default 60)")
    verb.add_argument(
        "--since",
        metavar="WHEN",
        help="the traffic it is about: 7d up to the newest trace (default), 2026-11-01, or all since the release",
    )
    verb.add_argument("--model", metavar="MODEL", help="only the traffic of this model (default: all)")
    verb.add_argument(
        "--segment",
        metavar="VALUE",
        help="only this segment, at its own threshold; needed where the detector has thresholds per segment",
    )
    verb.add_argument("--release", type=int, metavar="N", help="the release to recheck (default: the newest)")
    verb.add_argument("--seed", type=int, help="draw the same traces again (default: a new seed)")
    verb.add_argument("--again", action="store_true", help="leave the last one, decided or not, and begin another")

    verb = add_verb(
        verbs, "gate", "test in CI whether released thresholds still hold, on a labelled sample of a change"
    )
    verb.epilog = GATE
    verb.formatter_class = RawDescriptionHelpFormatter
    verb.add_argument("--release", required=True, metavar="FILE", help="the released thresholds file")
    verb.add_argument(
        "--labels",
        required=True,
        action="append",
        metavar="SAMPLE",
        help="labelled sample of the changed system; repeat to merge",
    )
    verb.add_argument(
        "--max-recall-drop",
        type=float,
        default=0.05,
        metavar="D",
        help="by how much recall may drop (default 0.05); precision has a limit of its own",
    )
    verb.add_argument(
        "--max-precision-drop",
        type=float,
        default=0.05,
        metavar="D",
        help="by how much precision may be below what was promised (default 0.05, also where only the other is given)",
    )
    verb.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this detector or ensemble; repeat for more"
    )
    verb.add_argument(
        "--as-stated",
        action="store_true",
        help="take measured promises as exact numbers: needs fewer labels, and tests the figure in the file only",
    )
    verb.add_argument("--summary", metavar="FILE.md", help="append a summary in Markdown, like $GITHUB_STEP_SUMMARY")

    verb = add_verb(verbs, "simulate", "measure what the statistics promise, where the truth is known")
    verb.add_argument(
        "--replications", type=int, default=200, metavar="N", help="per scenario, at least 50 (default 200)"
    )
    verb.add_argument("--labels", type=int, default=300, metavar="N", help="that a certificate may cost (default 300)")
    verb.add_argument("--seed", type=int, help="default: always the same, and so the same table")
    part = verb.add_mutually_exclusive_group()
    part.add_argument("--drift", action="store_true", help="only what `drift` and `recheck` promise")
    part.add_argument("--gate", action="store_true", help="only what `gate` promises")
    part.add_argument("--segments", action="store_true", help="only what thresholds per segment promise")
    part.add_argument("--align", action="store_true", help="only what `align compare` promises")
    part.add_argument("--learn", action="store_true", help="only what `learn` promises")
