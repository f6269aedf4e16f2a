"""What a drift report says: which way, by how much, and what cannot be told."""

from __future__ import annotations

from calibrate.report.sentences.watching.drift import comparison
from calibrate.stats.monitoring.drift import Moved, Shift, Side


def test_the_sentence_says_which_way_and_by_how_much() -> None:
    before, now = Side(2000, 2000, 82, 0.61, 0.3, 0.9, 2000), Side(300, 213, 27, 0.53, 0.2, 0.8, 300)
    moved = Shift(before, now, 0.1, 0.0001, 0.0001, 0.0001, 0.1)
    text = comparison("citation_grounding", moved, Moved(scores=True, flags=True, coverage=True))
    assert text == (
        "scores moved: Citation grounding is lower by 0.08 (median 0.61 → 0.53, n = 2,000 → 213); it flags 9% of "
        "traffic, 4.1% before (n = 2,000 → 300); it could score 71% of traces, 100% before (n = 2,000 → 300)"
    )
    quiet = Shift(before, now, 0.01, 0.4, 0.5, 1.0, 0.0912)
    assert (
        comparison("x", quiet, Moved()) == "x: no change seen (n = 2,000 → 213: a shift of 0.091 would have been seen)"
    )
    wider = Shift(before, Side(300, 300, 0, 0.61, 0.1, 0.99, 300), 0.1, 0.0001, 1.0, 1.0, 0.1)
    assert "is spread differently (median 0.61; 80% of scores in 0.3 to 0.9 → 0.1 to 0.99" in comparison(
        "x", wider, Moved(scores=True)
    )


def test_too_little_to_compare_names_what_is_short() -> None:
    few = Side(19, 19, 1, 0.5, 0.4, 0.6, 19)
    assert comparison("x", Shift(few, few, None, None, None, None, None), Moved()) == (
        "x: too few scores to tell (n = 19 → 19; 20 on each side at least)"
    )
    before, now = Side(300, 300, 1, 0.5, 0.4, 0.6, 300), Side(300, 300, 1, 0.5, 0.4, 0.6, 1)
    assert comparison("x", Shift(before, now, None, None, None, None, None), Moved()) == (
        "x: too few sources to tell (the traces come from 300 → 1 source; 10 on each side at least)"
    )
