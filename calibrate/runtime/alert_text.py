"""What an alert says, as Slack's JSON. Whatever comes from a trace is escaped: it cannot mention anybody or pose as a
link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from calibrate.runtime.decision import Decision
from calibrate.sanitize import visible

LISTED = 10  # answers told one by one; of the others only how many there are
ID, REASONS, ANSWER = 100, 400, 300  # code points


@dataclass(frozen=True, slots=True)
class Alert:
    """A flagged answer as it waits: no more of the trace than will be told. `answer` is None where it is not to be."""

    trace_id: str
    decision: Decision
    answer: str | None


def message(alerts: Sequence[Alert], *, untold: int, trace_url: str | None) -> dict[str, str]:
    """One message about all of them. `untold`: alerts before these that nobody was told of."""
    lines = [_title(alerts)]
    lines += [line for one in alerts[:LISTED] for line in _lines(one, trace_url)]
    if len(alerts) > LISTED:
        lines.append(f"and {_answers(len(alerts) - LISTED)} more")
    if untold:
        lines.append(f"Before these, {_answers(untold)} flagged of which no message could be sent.")
    return {"text": "\n".join(lines)}


def _title(alerts: Sequence[Alert]) -> str:
    tiers = Counter(one.decision.tier for one in alerts)
    by_tier = ", ".join(f"{tiers[tier]} {tier}" for tier in ("page", "signal") if tiers[tier])
    names = Counter(name for one in alerts for name in one.decision.flags).most_common(LISTED)
    flagged = ", ".join(f"{_safe(name, ID)} {n}" for name, n in names)
    versions = ", ".join(f"v{version}" for version in sorted({one.decision.version for one in alerts}))
    return f"Touchstone: {_answers(len(alerts))} flagged ({by_tier}) by release {versions}: {flagged}"


def _lines(one: Alert, trace_url: str | None) -> list[str]:
    name = _safe(one.trace_id, ID)
    if trace_url is not None:
        # A bar would end the address, and a line break the link.
        address = trace_url.replace("{id}", quote(one.trace_id, safe="", errors="replace")).replace("|", "%7C")
        name = f"<{_escaped(address)}|{name.replace('|', '/')}>"
    lines = [f"• {one.decision.tier} {one.decision.verdict} {name}: {_safe('; '.join(one.decision.reasons), REASONS)}"]
    return lines if one.answer is None else [*lines, f"> {_safe(one.answer, ANSWER)}"]


def _answers(n: int) -> str:
    return f"{n:,} answer" if n == 1 else f"{n:,} answers"


def _safe(text: str, most: int) -> str:
    return _escaped(visible(" ".join(text.split()), most))


def _escaped(text: str) -> str:
    """As Slack asks: these three are all that its texts treat specially between angle brackets."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
