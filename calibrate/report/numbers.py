"""How numbers, times and lists become text. Nothing else in the product formats a figure.

The rules, each held by tests/report/test_numbers.py:

- A share has one decimal below 10% and above 99%, none between, and no trailing ".0": 0.05 is always "5%".
- A share that is not all is never "100%", and one that is not nothing is never "0%": "over 99.9%", "under 0.1%".
- Bounds are joined by an en dash, or by "to" where one may be negative. A negative number has a true minus sign.
- What is not known is "unknown".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta

from calibrate.orientation import SIGNS
from calibrate.types import FlagWhen

UNKNOWN = "unknown"
# Sums of weights miss the whole by a rounding error of about this size.
_ROUNDING = 1e-11


def share(value: float | None) -> str:
    """Write a share from 0 to 1 as percent: "3.1%", "5%", "31%", "under 0.1%", "over 99.9%"."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if value <= _ROUNDING or value >= 1 - _ROUNDING:
        return f"{100 * round(value):.0f}%"
    if value < 0.001:
        return "under 0.1%"
    if value > 0.999:
        return "over 99.9%"
    tenths = value < 0.0995 or value > 0.99
    return f"{_trim_zeros(100 * value, 1 if tenths else 0)}%"


def exact_share(value: float) -> str:
    """Write a share that somebody asked for, as a target, in all its digits: "72.95%". Rounding up would overclaim."""
    return f"{100 * value:.10g}%"


def share_beside(value: float, other: float) -> str:
    """Write a share in as many digits (at most 3 decimals) as show on which side of another it lies: "69.8%" beside
    70%."""
    places = 0
    while places < 3 and (round(100 * value, places) - 100 * other) * (value - other) <= 0:
        places += 1
    return f"{_trim_zeros(100 * value, places)}%" if places else share(value)


def interval(low: float | None, high: float | None, unit: str = "%") -> str:
    """Write an interval of a share: "58–81%".

    Whole percents; tenths where both bounds are below 1% ("0.2–0.6%") or above 99% ("99.2–99.8%").
    """
    if low is None or high is None:
        return UNKNOWN
    if 0 < high < 0.0095:
        return f"{_trim_zeros(100 * low, 1)}–{max(100 * high, 0.1):.1f}{unit}"
    if 0.9905 < low < 1:
        return f"{min(100 * low, 99.9):.1f}–{_trim_zeros(100 * high, 1)}{unit}"
    return f"{100 * low:.0f}–{100 * high:.0f}{unit}"


def estimate(value: float | None, low: float | None, high: float | None) -> str:
    """Write a share with its interval: "34% (22–48%)"; without one just "34%"."""
    return share(value) if value is None or low is None or high is None else f"{share(value)} ({interval(low, high)})"


def difference(value: float | None, low: float | None, high: float | None, places: int = 3) -> str:
    """Write a difference with its 95% interval: "+0.005, 95% −0.011 to +0.023"."""
    if value is None:
        return UNKNOWN
    if low is None or high is None:
        return signed(value, places)
    return f"{signed(value, places)}, 95% {signed(low, places)} to {signed(high, places)}"


def points(value: float | None, low: float | None, high: float | None) -> str:
    """Write a difference of shares in percentage points: "+4 points (−6 to +13)".

    The bounds get as many decimals (at most 3) as keep an interval that excludes 0 from looking as if it held it.
    """
    if value is None:
        return UNKNOWN
    text = f"{signed(100 * value, 0)} {_noun(value)}"
    if low is None or high is None:
        return text
    places = _places(low, high)
    return f"{text} ({signed(100 * low, places)} to {signed(100 * high, places)})"


def points_apart(value: float, low: float, high: float) -> str:
    """Write a difference of shares that is shown, in words: "16 points fewer (95% interval 11 to 21)"."""
    places = _places(low, high)
    least, most = (f"{100 * bound:.{places}f}" for bound in sorted((abs(low), abs(high))))
    word = "more" if value > 0 else "fewer"
    return f"{abs(100 * value):.0f} {_noun(value)} {word} (95% interval {least} to {most})"


def _noun(value: float) -> str:
    return "point" if abs(round(100 * value)) == 1 else "points"


def _places(low: float, high: float) -> int:
    """The decimals, at most 3, that keep an interval of points that excludes 0 from looking as if it held it."""
    places, nearest = 0, 100 * min(abs(low), abs(high))
    while low * high > 0 and places < 3 and not round(nearest, places):
        places += 1
    return places


def plus_minus(halfwidth: float) -> str:
    """Write half of an interval's width in percentage points: "±9 points"; rounded up, so that it never overclaims."""
    nearest = max(1, math.ceil(round(100 * halfwidth, 6)))
    return f"±{nearest} {'point' if nearest == 1 else 'points'}"


def number(value: float | None, digits: int = 4) -> str:
    """Write a score or a threshold in `digits` significant digits: "0.8125", "−1.25", "12,346"."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"
    return _fix_minus(text)


def limit(threshold: float, flag_when: FlagWhen, digits: int = 4) -> str:
    """Write where a detector flags, in `digits` significant digits: "≥ 0.62"."""
    return f"{SIGNS[flag_when]} {number(threshold, digits)}"


def decimals(value: float | None, places: int = 3) -> str:
    """Write a figure with no unit (an AUROC, a Brier score, an α) with a fixed number of decimals: "0.940"."""
    return UNKNOWN if value is None or math.isnan(value) else _fix_minus(f"{value:.{places}f}")


def decimal_interval(low: float | None, high: float | None, places: int = 3) -> str:
    """Write an interval of a figure with no unit: "0.911–0.958", or "−0.02 to 0.31"."""
    if low is None or high is None:
        return UNKNOWN
    return f"{decimals(low, places)}{'–' if low >= 0 else ' to '}{decimals(high, places)}"


def signed(value: float, places: int = 3) -> str:
    """Write a number with its sign: "+0.031", "−0.002"; what rounds to nothing is "0" without a sign."""
    text = f"{value:+,.{places}f}"
    return "0" if not text.strip("+-0.") else _fix_minus(text)


def about(value: float) -> str:
    """Write an estimate in the two digits that it is worth: "260", "1,200", "7", "0.43"."""
    return f"{float(f'{value:.2g}'):,.0f}" if abs(value) >= 9.95 else _fix_minus(f"{value:.2g}")


def count(n: int, noun: str = "", plural: str | None = None) -> str:
    """Write a count: "1 trace", "1,204 traces"; without a noun "1,204"."""
    text = _fix_minus(f"{n:,}")
    return text if not noun else f"{text} {noun if n == 1 else plural or noun + 's'}"


def labelled(n: int, positives: int) -> str:
    """Say what a figure was measured on: "340 labels, 61 of them hallucinated"."""
    return f"{count(n, 'label')}, {count(positives)} of them hallucinated"


def money(dollars: float | None) -> str:
    """Write an amount of dollars: "$0.42", "$1,204.50", "under $0.01"."""
    if dollars is None or math.isnan(dollars):
        return UNKNOWN
    return "under $0.01" if 0 < dollars < 0.005 else f"${dollars:,.2f}"


def size(n: int) -> str:
    """Write a number of bytes in decimal units: "240 MB", "1.3 GB"."""
    if n < 1_000_000_000:
        return f"{max(1, round(n / 1e6))} MB"
    return f"{n / 1e9:.1f} GB"


def duration(seconds: float) -> str:
    """Write how long something takes: "40 s", "12 min", "1 h 20 min", "3 days"."""
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
    """Say how long ago a moment was: "just now", "5 min ago", "yesterday", "12 days ago"."""
    past = now - moment
    if past < timedelta(minutes=1):
        return "just now"
    days = (now.date() - moment.date()).days
    if days == 0 or past < timedelta(hours=6):
        return f"{duration(past.total_seconds())} ago"
    return "yesterday" if days == 1 else f"{days} days ago"


def day(moment: date) -> str:
    """Write a date: "20 Nov 2026"."""
    return f"{moment.day} {moment:%b %Y}"


def period(first: date, last: date) -> str:
    """Write the days of a period: "8 to 14 Nov 2026", "28 Oct to 3 Nov 2026", "14 Nov 2026"."""
    if (first.year, first.month, first.day) == (last.year, last.month, last.day):
        return day(last)
    if first.year != last.year:
        return f"{day(first)} to {day(last)}"
    return f"{first.day} to {day(last)}" if first.month == last.month else f"{first.day} {first:%b} to {day(last)}"


def minute(moment: datetime) -> str:
    """Write a moment: "20 Nov 2026, 14:05 UTC"."""
    return f"{day(moment)}, {moment:%H:%M} UTC"


def stamp(moment: datetime) -> str:
    """Write a moment of UTC for a table, in which text sorts by time: "2026-11-20 14:05"."""
    return f"{moment:%Y-%m-%d %H:%M}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Join names as people do: "a, b and c", or "a, b, c and 4 more"."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {count(len(names) - most)} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _trim_zeros(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _fix_minus(text: str) -> str:
    """Replace a leading hyphen by a true minus sign; a number that rounds to nothing has none."""
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", "−", 1) if text[0] == "-" else text
