"""What a purge removes, in sentences."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from calibrate.report.numbers import count, listed, stamp
from calibrate.types import PurgeCounts
from calibrate.workflow.upkeep.purge import Purged

NAMED = {
    "texts": ("text that only they use", "texts that only they use"),
    "alternatives": ("set of alternatives", "sets of alternatives"),
    "evidence": ("score's evidence and reason", "scores' evidence and reasons"),
    "replies": ("kept reply of a chat endpoint", "kept replies of chat endpoints"),
    "notes": ("note of a label", "notes of labels"),
    "spans": ("label's spans", "labels' spans"),
    "decisions": ("decision's reasons", "decisions' reasons"),
    "alerts": ("flag not told yet", "flags not told yet"),
}
STAYS = "kept: ids, times, models, hashes, verdicts, scores, figures, releases and which samples they are in"

IN_PLACE = "(purged)"


def purged_on(moment: datetime) -> str:
    """Say of a trace that its texts are gone."""
    return f"Its texts were purged on {stamp(moment)} (UTC). Its verdicts, scores and decisions stay."


def goes(counts: PurgeCounts) -> str:
    """List what goes, or went."""
    figures = asdict(counts)
    parts = [f"the texts of {count(counts.traces, 'trace')}"]
    parts += [count(figures[name], *words) for name, words in NAMED.items() if figures[name]]
    return ", ".join(parts)


def lines_of(purged: Purged, *, sqlite: bool) -> list[str]:
    """Say what a purge removed, what it left, and what is left to do."""
    if purged.compacted is None:
        return ["nothing to remove: no trace that is not purged already is meant"]
    lines = [f"removed {goes(purged.counts)}", STAYS]
    beside = [
        *([count(purged.logs, "log of a run", "logs of runs")] if purged.logs else []),
        *([count(purged.uploads, "abandoned upload")] if purged.uploads else []),
        *(["the embeddings kept between runs"] if purged.vectors else []),
    ]
    if beside:
        lines.append(f"removed on this machine: {', '.join(beside)}")
    if not purged.compacted:
        lines.append(
            "somebody held the store, so bytes may be left in its files: stop the workbench and its workers, and run "
            "the same command again"
        )
    elif sqlite:
        lines.append("the store's file was written anew, and its log emptied")
    else:
        lines.append("PostgreSQL wrote its tables anew (VACUUM FULL); its own write-ahead log and replicas follow it")
    if purged.prompts:
        lines.append(
            f"{listed(purged.prompts)} quoted what was purged, goes without it, and has another version now: run its "
            "judge again, and look whether its threshold still fits"
        )
    if purged.releases:
        versions = ", ".join(f"v{version}" for version in purged.releases)
        lines.append(
            f"a note or a reason of {versions} quotes what was purged, and a release is never changed: keep it, its "
            "files and `serve` from who must not read that"
        )
    lines.append("backups, exports, other machines' caches and running processes hold what they held: see to them")
    return lines
