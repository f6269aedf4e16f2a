"""Which passage the search for the lowest similarity looks at first."""

from __future__ import annotations

from calibrate.backends.embedding import Claim, Shortlist, Window
from calibrate.detectors.shared.lowest_similarity import Pair, Search
from calibrate.detectors.shared.scoring import Context


def first_window(claim: str, *texts: str) -> str:
    """The window that is compared first, of these."""
    windows = [Window(0, 0, len(text), text) for text in texts]
    search = Search(
        Shortlist([Claim(0, len(claim), claim)], windows, None),
        [Pair(0, list(range(len(texts))))],
        [Context("1", " ".join(texts))],
    )
    asked_claim, window = search.first()
    assert asked_claim == claim
    return window


def test_of_two_passages_that_share_as_much_the_shorter_comes_first() -> None:
    short, long = "Oxygen burns.", "Oxygen, helium, neon, argon, krypton, xenon and radon burn."
    claim = "Priestley discovered oxygen."
    assert first_window(claim, long, short) == first_window(claim, short, long) == short


def test_a_rare_word_in_common_counts_more_than_a_frequent_one() -> None:
    claim = "Priestley discovered oxygen."
    texts = ("Oxygen is light.", "Oxygen is blue.", "Priestley is English.")
    assert first_window(claim, *texts) == texts[2]
