"""What segment a trace is of: its operation, its model, its language, or any attribute."""

from __future__ import annotations

import pytest

from calibrate.errors import BadInput
from calibrate.types import Trace, names_segments, segment_of

TRACE = Trace(
    "t1", "Yes.", model="gpt-4o", operation="qa",
    attributes={"language": "de", "tier": "gold", "beta": True, "shard": 3, "team": None, "model": "x", "blank": ""},
)  # fmt: skip


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("operation", "qa"),
        ("model", "gpt-4o"),
        ("language", "de"),
        ("attributes.language", "de"),
        ("attributes.model", "x"),
        ("attributes.tier", "gold"),
        ("attributes.beta", "true"),
        ("attributes.shard", "3"),
        ("attributes.team", None),
        ("attributes.blank", None),
        ("attributes.absent", None),
    ],
)
def test_a_trace_is_of_the_segment_that_it_names(by: str, expected: str | None) -> None:
    assert names_segments(by)
    assert segment_of(TRACE, by) == expected


def test_a_trace_that_says_nothing_is_of_no_segment() -> None:
    for by in ("operation", "model", "language", "attributes.tier"):
        assert segment_of(Trace("t1", "Yes."), by) is None


@pytest.mark.parametrize("by", ["", "tier", "attributes", "attributes.", "Operation"])
def test_nothing_else_tells_segments_apart(by: str) -> None:
    assert not names_segments(by)
    with pytest.raises(BadInput, match="told apart by"):
        segment_of(TRACE, by)
