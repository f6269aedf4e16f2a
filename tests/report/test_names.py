"""Names as people read them."""

from __future__ import annotations

import pytest

from calibrate.report.names import title_of


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("rouge_l", "ROUGE-L"),
        ("token_overlap", "Token overlap"),
        ("answer_length", "Answer length"),
        ("grounding", "grounding"),  # an ensemble
        ("gone\n\x1b[31mred", "gone"),
    ],
)
def test_a_detector_has_its_display_name_and_others_their_own(name: str, title: str) -> None:
    assert title_of(name).startswith(title)
    assert title_of(name).isprintable()
    assert len(title_of("x" * 200)) <= 60
