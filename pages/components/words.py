"""Numbers and times as people say them."""

from __future__ import annotations

from datetime import datetime, timedelta


def count(n: int, one: str, many: str | None = None) -> str:
    """1 trace, 1,204 traces."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def labelled(n: int, positives: int) -> str:
    """What a figure was measured on: 340 labels, 61 of them hallucinated. All labels, and not those that are flagged:
    a precision of 72% is no share of the 340."""
    return f"{count(n, 'label')}, {positives:,} of them hallucinated"


def share(part: float) -> str:
    """3.1%, 5%, 31%, under 0.1%: as many digits as help."""
    if 0 < part < 0.001:
        return "under 0.1%"
    return f"{100 * part:.2g}%" if part < 0.0995 else f"{part:.0%}"


def span(seconds: float) -> str:
    """How long: 40 s, 12 min, 1 h 20 min, 3 days."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
    return f"{hours // 24} days"


def ago(moment: datetime, now: datetime) -> str:
    """How long since: just now, 5 min ago, yesterday, 12 days ago."""
    past = now - moment
    if past < timedelta(minutes=1):
        return "just now"
    days = (now.date() - moment.date()).days
    if days == 0 or past < timedelta(hours=6):
        return f"{span(past.total_seconds())} ago"
    return "yesterday" if days == 1 else f"{days} days ago"


def day(moment: datetime) -> str:
    """20 Nov 2026."""
    return f"{moment.day} {moment:%b %Y}"


def listed(names: list[str] | tuple[str, ...], most: int = 3) -> str:
    """a, b and c; a, b, c and 4 more."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
