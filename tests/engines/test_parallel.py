"""Every trace is given to a worker until one has scored it, whatever dies, and nothing that is outstanding twice."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.engines.choice import EngineChoice, choose_engine
from calibrate.engines.parallel import LARGEST_TASK, Outcome, run_parallel
from calibrate.engines.run import BATCH, Pairs, Tally
from calibrate.errors import BadInput, TouchstoneError


class FaultyPool:
    """Workers that die now and then, and come back in any order."""

    workers = 2

    def __init__(self, rng: random.Random, dies: float, seconds: float) -> None:
        self.rng, self.dies, self.seconds = rng, dies, seconds
        self.outstanding: list[Pairs] = []
        self.scored: Counter[str] = Counter()
        self.sizes: list[int] = []
        self.closed = 0

    @property
    def room(self) -> int:
        return self.rng.randint(0, 4)  # a cluster may have no worker for a while

    def submit(self, pairs: Pairs) -> None:
        contents = {content for _, content in pairs}
        for other in self.outstanding:
            assert not contents & {content for _, content in other}
        self.sizes.append(len(pairs))
        self.outstanding.append(pairs)

    def wait(self, seconds: float) -> list[Outcome]:
        if not self.outstanding:
            return []
        pairs = self.outstanding.pop(self.rng.randrange(len(self.outstanding)))
        if self.rng.random() < self.dies:
            return [Outcome(pairs, None)]
        self.scored.update(content for _, content in pairs)
        return [Outcome(pairs, {"d": Tally(scored=len(pairs))}, self.seconds * len(pairs))]

    def close(self) -> None:
        self.closed += 1


@given(
    contents=st.lists(st.integers(0, 400), max_size=600),
    chunk=st.integers(1, 200),
    seed=st.integers(0, 2**32),
)
def test_every_content_is_scored_whatever_dies(contents: list[int], chunk: int, seed: int) -> None:
    pairs = [(n, str(content)) for n, content in enumerate(contents)]
    pool, tallies = FaultyPool(random.Random(seed), dies=0.02, seconds=0.01), {"d": Tally()}
    chunks = [pairs[start : start + chunk] for start in range(0, len(pairs), chunk)]
    try:
        run_parallel(pool, ["d"], chunks, tallies, on_progress=lambda *_: True)
    except TouchstoneError:  # three deaths in a row, one task in 125,000
        return
    assert set(pool.scored) == set(map(str, contents))
    # What shares a content that was outstanding is counted, and not given again.
    assert tallies["d"].scored == pool.scored.total()
    assert tallies["d"].n_finished == len(contents)
    assert pool.closed == 1


def test_a_task_that_keeps_killing_workers_ends_the_run() -> None:
    pool = FaultyPool(random.Random(1), dies=1.0, seconds=0.01)
    with pytest.raises(TouchstoneError, match="3 workers in turn died over the same 3 traces"):
        run_parallel(pool, ["d"], [[(1, "a"), (2, "b"), (3, "c")]], {"d": Tally()}, on_progress=lambda *_: True)
    assert pool.closed == 1


@pytest.mark.parametrize(("seconds", "size"), [(1e-5, LARGEST_TASK), (0.01, 96), (2.0, BATCH)])
def test_tasks_grow_to_a_second(seconds: float, size: int) -> None:
    pool = FaultyPool(random.Random(1), dies=0.0, seconds=seconds)
    run_parallel(pool, ["d"], [[(n, str(n)) for n in range(60_000)]], {"d": Tally()}, on_progress=lambda *_: True)
    assert pool.sizes[-5] == size


def test_where_a_run_executes_is_checked() -> None:
    assert choose_engine(environment={}) == EngineChoice()
    there = {"TOUCHSTONE_ENGINE": "ray", "TOUCHSTONE_WORKERS": "3", "RAY_ADDRESS": "head:6379"}
    assert choose_engine(environment=there) == EngineChoice("ray", 3, "head:6379")
    assert choose_engine("local", environment=there) == EngineChoice("local", 3)
    assert EngineChoice.from_json(EngineChoice("ray", 3, "head:6379").to_json()) == EngineChoice("ray", 3, "head:6379")
    for name, workers, address, sentence in (
        ("spark", None, None, "no engine 'spark'; there are: auto, local, processes, ray"),
        ("processes", 0, None, "the workers cannot be 0"),
        ("processes", 2, "head:6379", "an address is for `--engine ray`"),
        ("ray", None, None, "say where the Ray cluster is"),
    ):
        with pytest.raises(BadInput, match=sentence):
            choose_engine(name, workers, address, environment={})
    for value in ("many", "²", "-1"):
        with pytest.raises(BadInput, match=f"TOUCHSTONE_WORKERS is '{value}'"):
            choose_engine(environment={"TOUCHSTONE_WORKERS": value})
