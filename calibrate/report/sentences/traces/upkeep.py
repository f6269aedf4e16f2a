"""What a store, a backup or an archive holds, and what is wrong with one, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from calibrate.report.numbers import count
from calibrate.workflow.upkeep.checking import Checked, Finding

# What people count a store by: the other tables follow from these.
NAMED = {"traces": "trace", "labels": "label", "samples": "sample", "scores": "score", "releases": "release"}


def holds(rows: Mapping[str, int]) -> str:
    """Say how much of each is in there."""
    return ", ".join(count(rows.get(name, 0), noun) for name, noun in NAMED.items())


def looked_at(checked: Checked) -> str:
    """Say what was looked at in a store in which nothing is wrong."""
    purged = f" ({count(checked.purged)} purged, with nothing to look at)" if checked.purged else ""
    return (
        f"{count(checked.traces, 'trace')}{purged} and {count(checked.texts, 'text')} are what their digests say, so "
        f"are {count(checked.configurations, 'detector configuration')} and {count(checked.releases, 'release')}; "
        f"{count(checked.labelled, 'gold verdict')} follow from the labels; no row points to one that is missing; the "
        f"audit log is guarded, and with {count(checked.entries, 'entry', 'entries')} lacks no release"
    )


def wrong(finding: Finding) -> str:
    """Say what is wrong, of how many rows and of which."""
    n, place = finding.rows, finding.place
    examples = "; ".join(finding.examples) + (" …" if n > len(finding.examples) else "")
    if finding.trouble == "database":
        return f"the database is damaged: {examples}"
    if finding.trouble == "unreadable":
        return f"{place} cannot be read to the end: {examples}"
    if finding.trouble == "orphans":
        return f"{count(n, 'row')} of {place} {'points' if n == 1 else 'point'} to a row that is missing: {examples}"
    if finding.trouble == "gold":
        return f"{count(n, 'gold verdict')} {'does' if n == 1 else 'do'} not follow from the labels: {examples}"
    if finding.trouble == "unguarded":
        return f"the database no longer keeps the audit log from changes, triggers are missing or changed: {examples}"
    if finding.trouble == "gaps":
        return f"the audit log lacks the entries numbered {examples}"
    if finding.trouble == "unlogged":
        return f"the audit log has no entry of {examples}"
    if finding.trouble == "mislogged":
        return f"what the audit log says of {examples} is not what is in the store"
    if finding.trouble == "documents":
        return f"{count(n, 'release')} would be refused by a runtime: {examples}"
    return f"{count(n, 'row')} of {place} {'is' if n == 1 else 'are'} not what was stored, by its digest: {examples}"
