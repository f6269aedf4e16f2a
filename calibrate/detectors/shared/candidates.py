"""Choose the passages that a claim is judged with where there are too many to judge all."""

from __future__ import annotations

from collections.abc import Sequence

from calibrate.backends.embedding import Shortlist
from calibrate.backends.text.segments import words


def rank_sharing(listed: Shortlist, pairs: int) -> list[list[int]]:
    """Rank, for each claim, the windows by words in common, and keep as many as the budget of pairs allows."""
    window_words = [frozenset(words(window.text).tokens) for window in listed.windows]
    most = max(1, pairs // len(listed.claims))
    ranked = []
    for claim in listed.claims:
        tokens = frozenset(words(claim.text).tokens)
        ranked.append(sorted(range(len(window_words)), key=lambda at: (-len(tokens & window_words[at]), at))[:most])
    return ranked


def explain_limit(candidates: Sequence[Sequence[int]], n_wanted: int) -> str | None:
    """Say that each claim was judged with fewer passages than wanted; None if with all."""
    most = len(candidates[0])
    return (
        None if most >= n_wanted else f"too long to judge in full: each sentence with {most} passages, not {n_wanted}"
    )
