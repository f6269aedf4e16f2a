"""Verbs for production and after a release: watch, serve, upgrades, drift."""

from __future__ import annotations

from calibrate.cli.grammar import Verbs, add_on_missing, add_verb


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
    add_on_missing(verb)
    verb.add_argument(
        "--status",
        action="store_true",
        help="decide nothing: say of every live threshold what it promised, what is known now, and what is due",
    )

    verb = add_verb(verbs, "serve", "serve releases over HTTP, read-only, for runtimes to load")
    verb.add_argument("--host", default="127.0.0.1", help="default 127.0.0.1: this machine only")
    verb.add_argument("--port", type=int, default=8502, help="default 8502; 0 takes a free one")

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
    verb.add_argument("--release", type=int, metavar="N", help="the release to recheck (default: the newest)")
    verb.add_argument("--seed", type=int, help="draw the same traces again (default: a new seed)")
    verb.add_argument("--again", action="store_true", help="leave the last one, decided or not, and begin another")

    verb = add_verb(verbs, "simulate", "measure what the statistics promise, where the truth is known")
    verb.add_argument(
        "--replications", type=int, default=200, metavar="N", help="per scenario, at least 50 (default 200)"
    )
    verb.add_argument("--labels", type=int, default=300, metavar="N", help="that a certificate may cost (default 300)")
    verb.add_argument("--seed", type=int, help="default: always the same, and so the same table")
    verb.add_argument("--drift", action="store_true", help="only what `drift` and `recheck` promise")
