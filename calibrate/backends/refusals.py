"""Answers that decline to answer: there is nothing in them to be right or wrong."""

from __future__ import annotations


def refusal(answer: str) -> str | None:
    """The sentence in which the answer declines, or None. Lists: `files/refusals/*.txt`, editable."""
    return None
