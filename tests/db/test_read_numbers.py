"""Reading many numbers tells how many are read, and can be ended in the middle; the connection stays good."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import db.tables.numbers
from calibrate.types import TraceFilter
from db import Store
from tests.workflow.making import draw, fill

MANY = 400


class Ended(Exception):
    pass


@pytest.mark.both_databases
def test_it_tells_how_many_are_read_and_can_be_ended(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db.tables.numbers, "CHUNK", 50)
    config = fill(store, *draw(MANY)).id
    seen: list[int] = []

    def read(configs: Sequence[int], end: int) -> tuple[int, int]:
        def on_rows(rows: int) -> None:
            seen.append(rows)
            if rows >= end:
                raise Ended

        keys, scores = store.pools.scores(TraceFilter(), store.pools.moment(), configs, on_rows=on_rows)
        return len(keys), int(np.isfinite(scores).sum())

    for _ in range(20):  # more often than there are connections
        with pytest.raises(Ended):
            read([config], 50)
    seen.clear()
    assert read([config], MANY + 1) == (MANY, MANY - MANY // 10)
    assert seen == sorted(seen)
    assert seen[-1] == MANY
