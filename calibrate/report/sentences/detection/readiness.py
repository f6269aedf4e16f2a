"""Which detectors can run, what a run would take, and what to log or set up for the others, in words."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.report.numbers import UNKNOWN, count, duration, listed, money
from calibrate.sanitize import one_line
from calibrate.workflow.detection.detectors import asks_chat
from calibrate.workflow.detection.readiness import Group, Readiness, Standing, Total

HEADINGS = {
    Group.READY: "Ready",
    Group.IMPORTED: "Imported scores",
    Group.LACKS: "Your traces lack",
    Group.SETUP: "Needs setup",
}
DOCUMENT = "docs/how-to/traces.md, “What detectors read”"
FIELDS = {
    "alternatives": "other answers to the same question",
    "answer": "an answer",
    "context": "what the answer was given",
    "question": "the question",
    "retrieval_scores": "the retriever's scores",
    "retrieved": "retrieved passages",
    "schema": "the schema of the answer",
    "sources": "the texts of retrieved passages",
    "tokens": "log-probabilities of tokens",
}
HOW_TO_LOG = {
    "alternatives": "Log two or more further answers to the question as `alternatives`, or let a chat endpoint draw "
    "them: `alternatives --sample NAME`.",
    "answer": "Log what the model wrote as `answer`.",
    "context": "Log the retrieved passages as `sources`, or all that the answer was given as one text, `context`.",
    "question": "Log what was asked as `question`.",
    "retrieval_scores": "Log how well the retriever rated each passage as `retrieval_score` in `sources`.",
    "retrieved": "Log the retrieved passages as `sources`, each with its `retrieval_score`.",
    "schema": "Log the JSON Schema that the answer should follow as `schema`.",
    "sources": "Log the retrieved passages as `sources`, by the number that the answer cites.",
    "tokens": "Ask the model for `logprobs` with `top_logprobs` 5, and log them as `tokens`.",
}
EXAMPLES = {
    "alternatives": '"alternatives": ["Two years.", "It is covered for 24 months."]',
    "answer": '"answer": "Two years [1]."',
    "context": '"context": "Covered for 24 months."',
    "question": '"question": "How long is the warranty?"',
    "retrieval_scores": '"sources": {"1": {"text": "Covered for 24 months.", "retrieval_score": 0.83}}',
    "retrieved": '"sources": {"1": {"title": "Warranty", "retrieval_score": 0.83}}',
    "schema": '"schema": {"type": "object", "required": ["months"]}',
    "sources": '"sources": {"1": "Covered for 24 months.", "2": {"title": "Returns", "text": "Within 14 days."}}',
    "tokens": '"tokens": [{"token": "Two", "logprob": -0.11, "top_logprobs": [{"token": "One", "logprob": -2.3}]}]',
}


def can_score(row: Readiness) -> str:
    """Say how many traces it scores: "412 of 540"; "up to 540 of 540" while it was not run on all, as it may abstain,
    and answers may be refusals."""
    most = "up to " if row.able and row.coverage.to_do else ""
    return f"{most}{count(row.able)} of {count(row.total)}"


def time(row: Readiness) -> str:
    """Say what scoring the rest takes, by earlier runs; "" where nothing is left."""
    if not row.plan.traces:
        return ""
    return UNKNOWN if row.plan.seconds is None else f"about {duration(row.plan.seconds)}"


def cost(row: Readiness) -> str:
    """Say what its requests cost at most; "" for a detector that sends none, or where nothing is left."""
    if not row.plan.traces or not asks_chat(row.detector):
        return ""
    price = row.plan.estimate.cost if row.plan.estimate else None
    return UNKNOWN if price is None else f"≤ {money(price)}"


def standing(row: Readiness) -> str:
    """Say how far its scores are: "no scores yet", "412 of 540 scored, 128 to go, with model lettucedetect-base"."""
    if row.standing == Standing.NEVER:
        return "no scores yet"
    if row.standing == Standing.CHANGED:
        return "stale: its model, prompt or list has changed"
    if row.standing == Standing.SETTINGS:
        return "scored with other settings"
    covered = row.coverage
    parts = [f"{count(covered.scored)} of {count(covered.total)} scored"]
    parts += [f"{count(covered.waiting)} to go"] if covered.waiting else []
    parts += [f"{count(covered.failed)} failed"] if covered.failed else []
    parts += [f"with {name} {one_line(str(value), 60)}" for name, value in row.settings.items()]
    return ", ".join(parts)


def imported(row: Readiness) -> str:
    """Say how many traces have an imported score, and which revision of them counts."""
    return f"{count(row.coverage.scored)} of {count(row.total)} scored, revision {row.detector.revision()}"


def failed(row: Readiness) -> str:
    """Say on how many traces it failed, and why: "Failed on all 80: the endpoint did not answer"."""
    if row.failure is None:
        return ""
    if row.failure.unavailable:
        return f"Could not run: {one_line(row.failure.why, 300)}"
    tried = count(row.failure.tried)
    where = f"all {tried}" if row.failure.failed == row.failure.tried else f"{count(row.failure.failed)} of {tried}"
    return f"Failed on {where}: {one_line(row.failure.why, 300).strip() or 'no reason given'}"


def of_run(total: Total) -> str:
    """Say what a run takes altogether: "about 9 min · at most $0.42"; what nobody measured is unknown."""
    if not total.untimed:
        text = f"about {duration(total.seconds)}"
    elif total.seconds:
        text = f"at least {duration(total.seconds)}, {count(total.untimed)} never timed"
    else:
        text = "time unknown until a first run"
    if not total.asks:
        return text
    return f"{text} · cost unknown" if total.unpriced else f"{text} · at most {money(total.cost)}"


def no_traces(*, is_labelled: bool) -> str:
    """Say that there is nothing to run on, and what to look at instead."""
    if is_labelled:
        return "No trace is labelled yet, and only those are looked at: `detect --list --all` looks at every trace"
    return "There is no trace to run on: `import FILE` brings some, and `sample NAME` draws from them"


def lacking(name: str, rows: Sequence[Readiness]) -> str:
    """Say which field is missing: "log-probabilities of tokens: on 0 of 540 traces"."""
    if not name:
        return one_line(rows[0].silent, 200) if rows[0].silent else "something that the detector looks for"
    total = rows[0].total
    return f"{FIELDS.get(name, name)}: on {count(total - rows[0].lacks[name])} of {count(total)} traces"


def how_to_log(name: str) -> str:
    """Say in one sentence what to log; "" where no field is missing."""
    return HOW_TO_LOG.get(name, "")


def waiting_for(rows: Sequence[Readiness]) -> str:
    """Name the detectors that wait for something."""
    return listed([one_line(row.detector.title, 60) for row in rows], len(rows))


def setup(cause: str) -> str:
    """Say what to set up, as a sentence."""
    text = one_line(cause, 600)
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
