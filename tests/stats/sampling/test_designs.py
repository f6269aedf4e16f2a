"""Designs of a sample: allocation, draws, names and windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.stats.sampling.designs import (
    allocate,
    default_name,
    draw_ranks,
    parse_since,
    window_start,
)

POPULATIONS = st.dictionaries(st.text(max_size=4), st.integers(0, 10**7), max_size=12)


@given(POPULATIONS, st.integers(1, 3_000))
def test_an_allocation_keeps_its_promises(populations: dict[str, int], n: int) -> None:
    given_out = allocate(populations, n)
    assert list(given_out) == list(populations)
    assert sum(given_out.values()) == min(n, sum(populations.values()))
    least = {name: min(4, size) for name, size in populations.items()}
    assert all(0 <= given_out[name] <= populations[name] for name in populations)
    if n >= sum(least.values()):
        assert all(given_out[name] >= least[name] for name in populations)
    for a in populations:
        for b in populations:
            assert populations[a] <= populations[b] or given_out[a] >= given_out[b]
    assert allocate(dict(reversed(populations.items())), n) == given_out


def test_allocation_is_proportional_to_the_cube_root() -> None:
    assert allocate({"a": 1_000, "b": 8_000, "c": 27_000}, 300) == {"a": 50, "b": 100, "c": 150}
    # The published octaves of a million: no stratum is below 4, none above what it holds.
    octaves = {f"1/{2**k}": 10**6 // 2**k for k in range(1, 9)}
    drawn = allocate(octaves, 300)
    total = sum(size ** (1 / 3) for size in octaves.values())
    assert all(abs(drawn[name] - 300 * size ** (1 / 3) / total) < 1 for name, size in octaves.items())


def test_too_few_labels_are_spread_evenly_and_small_strata_are_taken_whole() -> None:
    assert allocate({"a": 5, "b": 50, "c": 500}, 7) == {"a": 2, "b": 2, "c": 3}
    assert allocate({"a": 5, "b": 50, "c": 500}, 2) == {"a": 0, "b": 1, "c": 1}
    assert allocate({"a": 2, "b": 1_000_000}, 300) == {"a": 2, "b": 298}
    assert allocate({"a": 3, "b": 4}, 300) == {"a": 3, "b": 4}
    assert allocate({}, 300) == {}


@pytest.mark.parametrize(("populations", "n"), [({"a": 5}, 0), ({"a": 5}, -1), ({"a": -1}, 5)])
def test_impossible_allocations_are_a_sentence(populations: dict[str, int], n: int) -> None:
    with pytest.raises(BadInput, match=r"at least 1|below 0"):
        allocate(populations, n)


@given(st.integers(0, 2**32), st.integers(0, 500), st.integers(0, 500))
def test_ranks_are_distinct_and_repeatable(seed: int, extra: int, n: int) -> None:
    ranks = draw_ranks(np.random.default_rng(seed), n + extra, n)
    assert len(set(ranks.tolist())) == n
    assert n == 0 or (ranks.min() >= 0 and ranks.max() < n + extra)
    assert ranks.tolist() == draw_ranks(np.random.default_rng(seed), n + extra, n).tolist()


def test_every_rank_and_every_place_is_equally_likely() -> None:
    rng = np.random.default_rng(5)
    draws = np.array([draw_ranks(rng, 10, 3) for _ in range(20_000)])
    for place in range(3):
        # 20,000 draws over 10 ranks: 2,000 each, standard deviation 42.
        assert np.all(np.abs(np.bincount(draws[:, place], minlength=10) - 2_000) < 200)


def test_more_ranks_than_there_are_is_refused() -> None:
    with pytest.raises(BadInput, match="cannot draw 4 of 3"):
        draw_ranks(np.random.default_rng(0), 3, 4)


@pytest.mark.parametrize(
    ("day", "name"),
    [("2026-11-16", "2026-W47"), ("2027-01-01", "2026-W53"), ("2024-12-30", "2025-W01"), ("2026-02-05", "2026-W06")],
)
def test_the_default_name_is_the_iso_week(day: str, name: str) -> None:
    assert default_name(datetime.fromisoformat(day)) == name


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("14d", timedelta(days=14)),
        (" 12H ", timedelta(hours=12)),
        ("2w", timedelta(weeks=2)),
        ("all", None),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T10:00+02:00", datetime(2026, 11, 1, 8, tzinfo=UTC)),
    ],
)
def test_windows(text: str, window: timedelta | datetime | None) -> None:
    assert parse_since(text) == window


@pytest.mark.parametrize(
    "text", ["", "14", "d", "-3d", "14 days", "2026-13-01", "yesterday", "0d", "9999999999d", "١d"]
)
def test_other_windows_are_a_sentence(text: str) -> None:
    with pytest.raises(BadInput, match="write 14d"):
        parse_since(text)


def test_a_window_starts_where_it_says() -> None:
    now = datetime(2026, 11, 21, 4, tzinfo=UTC)
    assert window_start(parse_since("1d"), now) == datetime(2026, 11, 20, 4, tzinfo=UTC)
    assert window_start(parse_since("2026-11-01"), now) == datetime(2026, 11, 1, tzinfo=UTC)
    assert window_start(None, now) is None
    assert window_start(timedelta(days=999_999), now) is None
