"""Pulls from other systems, in sentences."""

from __future__ import annotations

import shlex

from calibrate.report.numbers import count

NONE = "nothing was pulled into this store yet: `pull langfuse`, phoenix, mlflow, langsmith or sql begins"
LIMITED = "there is more: the next pull goes on from here"
OUTSIDE = (
    "annotated answers are those that somebody picked: their labels can be read and detectors compared on them, and "
    "they choose no threshold unless every trace has one; draw a sample for that"
)

BEGIN = (
    "Traces, scores and labels can also be fetched from Langfuse, Phoenix, MLflow, LangSmith or a table of your own. "
    "A pull remembers how far it came; the key comes from the system's own environment variable."
)
FIRST = "python -m calibrate pull phoenix --since 14d"
GO_ON = "Each goes on where it ended, by cron or by hand:"

MIXED = (
    "the cursor column writes times in more than one way (a T or a space before the hour, or other offsets from UTC), "
    "which do not sort as text: the next pull begins a day earlier. Write them in one way, or compare a column of times"
)

HELD_BACK = (
    "the cursor stands where it stood, and the LIMIT of the query may hide the rows behind it. Take the LIMIT out, and "
    "--restart with that query: a pull reads a thousand rows at a time anyway, and its own --limit ends it early. A "
    "shorter --overlap reads fewer rows again"
)

COLUMNS_ARE = "the query has the columns"
NO_ROWS = "there are no rows;"
PREVIEW = "How the rows of a table of your own come in"


def stopped(traces: int) -> str:
    """Say what of a stopped pull is kept."""
    return f"{count(traces, 'answer')} pulled so far are in the store; the same command goes on from there"


def changed(answers: int) -> str:
    """Say that answers have another content in the system by now."""
    return (
        f"{count(answers, 'answer has', 'answers have')} other content there than when first pulled, like a late "
        "source: the first is kept, as labels and scores may be about it"
    )


def ahead(rows: int) -> str:
    """Say that rows are dated in the future."""
    return (
        f"{count(rows, 'row is', 'rows are')} dated after this pull: each comes in once, and the next pull begins "
        "before them, so that no later row is passed over"
    )


def command(system: str, name: str) -> str:
    """The command that goes on with a pull."""
    return f"python -m calibrate pull {system} --name {shlex.quote(name)}"


def annotation_line(system: str, written: int, waiting: int, given_up: int, problem: str | None) -> str:
    """Say how many verdicts a system has, and is still to have."""
    line = f"{system}: {count(written, 'verdict')} written"
    if waiting:
        line += f", {count(waiting)} kept for the next `watch`" + (f" ({problem})" if problem else "")
    return line + (f", {count(given_up)} given up: it does not have the answers" if given_up else "")
