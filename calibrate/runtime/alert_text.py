"""The text of an alert, as Slack's JSON. Text from a trace is escaped: it cannot mention anybody or pose as a link."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from calibrate.runtime.decision import Decision
from calibrate.sanitize import visible
from calibrate.webhook import escape_slack

MAX_LISTED = 10  # answers listed one by one; the rest are only counted
ID, REASONS, ANSWER = 100, 400, 300  # longest texts, in code points
OTEL_ID = re.compile("([0-9a-f]{32})-([0-9a-f]{16})")  # what an answer is called whose span names no id of its own


@dataclass(frozen=True, slots=True)
class Alert:
    """A flagged answer in the queue, with no more of its trace than the message will show. `answer` may be withheld.

    `span` are the OpenTelemetry ids of trace and span in hexadecimal, where they are known.
    """

    trace_id: str
    decision: Decision
    answer: str | None
    span: tuple[str, str] | None = None


def message(alerts: Sequence[Alert], *, unreported: int, trace_url: str | None) -> dict[str, str]:
    """Write one message about all the alerts.

    Parameters
    ----------
    alerts : sequence of Alert
        At least one.
    unreported : int
        Earlier alerts that no message was sent for.
    trace_url : str or None
        Address of a trace, with {id} for its id, or {otel_trace} and {otel_span} for those of its span.

    Returns
    -------
    dict of str to str
        The JSON document that Slack takes.
    """
    lines = [_write_title(alerts)]
    lines += [line for alert in alerts[:MAX_LISTED] for line in _write_alert(alert, trace_url)]
    if len(alerts) > MAX_LISTED:
        lines.append(f"and {_count_answers(len(alerts) - MAX_LISTED)} more")
    if unreported:
        lines.append(f"Before these, {_count_answers(unreported)} flagged without a message being sent.")
    return {"text": "\n".join(lines)}


def _write_title(alerts: Sequence[Alert]) -> str:
    tiers = Counter(alert.decision.tier for alert in alerts)
    by_tier = ", ".join(f"{tiers[tier]} {tier}" for tier in ("page", "signal") if tiers[tier])
    names = Counter(name for alert in alerts for name in alert.decision.flags).most_common(MAX_LISTED)
    flagged = ", ".join(f"{_escape_untrusted(name, ID)} {n}" for name, n in names)
    versions = ", ".join(f"v{version}" for version in sorted({alert.decision.version for alert in alerts}))
    return f"Touchstone: {_count_answers(len(alerts))} flagged ({by_tier}) by release {versions}: {flagged}"


def _write_alert(alert: Alert, trace_url: str | None) -> list[str]:
    decision, name = alert.decision, _escape_untrusted(alert.trace_id, ID)
    address = None if trace_url is None else _fill(trace_url, alert)
    if address is not None:
        # Slack's syntax is <address|name>: a bar would end the address.
        address = address.replace("|", "%7C")
        name = f"<{escape_slack(address)}|{name.replace('|', '/')}>"
    reasons = _escape_untrusted("; ".join(decision.reasons), REASONS)
    lines = [f"• {decision.tier} {decision.verdict} {name}: {reasons}"]
    return lines if alert.answer is None else [*lines, f"> {_escape_untrusted(alert.answer, ANSWER)}"]


def _fill(trace_url: str, alert: Alert) -> str | None:
    """Put the ids into the address. None where it wants OpenTelemetry's and the trace has none."""
    values = {"{id}": quote(alert.trace_id, safe="", errors="replace")}
    if match := OTEL_ID.fullmatch(alert.trace_id):
        values |= {"{otel_trace}": match[1], "{otel_span}": match[2]}
    if alert.span is not None:
        values |= {"{otel_trace}": alert.span[0], "{otel_span}": alert.span[1]}
    for name in ("{id}", "{otel_trace}", "{otel_span}"):
        if name in trace_url and name not in values:
            return None
    return re.sub("{id}|{otel_trace}|{otel_span}", lambda place: values[place.group()], trace_url)


def _count_answers(n: int) -> str:
    return f"{n:,} answer" if n == 1 else f"{n:,} answers"


def _escape_untrusted(text: str, most: int) -> str:
    return escape_slack(visible(" ".join(text.split()), most))
