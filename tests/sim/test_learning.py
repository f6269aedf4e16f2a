"""What `learn` promises: few replications, wide bounds. The table: `python -m calibrate simulate --learn`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import binom

from calibrate.simulate import learning

RUNS = 40


def test_a_head_that_knows_nothing_more_is_seldom_offered() -> None:
    allowed = binom.isf(0.001 / 2, RUNS, 0.05) / RUNS
    for seed, world in enumerate((learning.NOTHING[0], replace(learning.NOTHING[3], n=150))):
        rng = np.random.default_rng(seed)
        gains = [learning._gains(learning.compare(*world.draw(rng), rng)) for _ in range(RUNS)]
        assert np.mean(gains) <= allowed


def test_what_only_a_sentence_shows_is_found() -> None:
    row = learning.offered(learning.PLANTED[0], 20, np.random.default_rng(3))
    assert row.measured >= binom.isf(0.999, 20, learning.POWER) / 20
    assert (row.target, row.name) == ("≥ 80%", "a head is offered: a sentence shows it, 300 labels")
