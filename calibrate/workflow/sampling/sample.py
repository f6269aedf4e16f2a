"""Sample: look at the pool, draw members with known inclusion probabilities, keep them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.sanitize import is_plain
from calibrate.stats.sampling import designs
from calibrate.stats.sampling.designs import Cut
from calibrate.types import Member, Moment, Sample, SampleOptions, TraceFilter
from calibrate.workflow.sampling import frame
from db import Store
from db.tables.filters import NONE

COUNTED, LOOKED_AT = 100_000, 500
"""Traces of a pool up to which its scores are counted, and traces drawn to estimate their number beyond."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What a sample would be drawn from. `undated` traces match the filter but carry no time; they are in `size` only
    when the filter lets them in. `facets` counts the pool by attribute."""

    size: int
    undated: int
    facets: Mapping[str, Mapping[str, int]]


def look(store: Store, where: TraceFilter, *, by: tuple[str, ...] = ("model", "operation")) -> Pool:
    """Describe the pool that `where` selects."""
    where = readable(store, where)
    facets = {name: store.traces.facet(where, name) for name in by}
    size = sum(next(iter(facets.values())).values()) if facets else store.traces.count(where)
    return Pool(size, store.traces.undated(where), facets)


def usual_design(store: Store, where: TraceFilter) -> str:
    """Octave once half of the window's traces have a score of at least one detector, else random."""
    where = readable(store, where)
    total = store.traces.count(where)
    return "octave" if total and scored(store, where) >= frame.ENOUGH_SCORED * total else "random"


def scored(store: Store, where: TraceFilter) -> int:
    """How many traces of the pool have a score of at least one detector; of a pool beyond COUNTED traces an estimate,
    from some that are drawn at random."""
    where, configs = readable(store, where), [config.id for config in frame.scored_configs(store)]
    total = store.traces.count(where)
    if configs and total > COUNTED:
        drawn = store.traces.draw(where, LOOKED_AT, population=total, rng=np.random.default_rng(0))
        if share := store.pools.count_scored(where, configs, pks=drawn) / len(drawn):
            return round(share * total)
    return store.pools.count_scored(where, configs)


def strata(
    store: Store,
    design: str,
    where: TraceFilter,
    *,
    by: str | None = None,
    cut: Cut | None = None,
    fresh: bool = False,
) -> Mapping[str, int]:
    """How many traces each stratum of a design would hold. Raises BadInput as `draw` does."""
    return _pool(store, design, readable(store, where), store.pools.moment(), by=by, cut=cut, fresh=fresh).strata


def flagged_pool(store: Store, cut: Cut, where: TraceFilter, fresh: bool = True) -> int:
    """How many traces of the pool the cut flags; with `fresh`, of those without a label and in no sample."""
    return frame.count_flagged(store, readable(store, where), store.pools.moment(), cut, fresh=fresh)


def readable(store: Store, where: TraceFilter) -> TraceFilter:
    """The filter without the traces that are purged by now: nobody could label them."""
    newest = store.purges.newest()
    return where if newest is None or where.unpurged_at else replace(where, unpurged_at=newest)


def draw(
    store: Store,
    name: str,
    *,
    size: int,
    design: str,
    by: str | None = None,
    where: TraceFilter,
    seed: int | None,
    now: datetime,
    cut: Cut | None = None,
    fresh: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Sample:
    """Draw and store a sample. Its members are in random order, so that a half-labelled sample is half a sample.

    `design` is one of sampling.DESIGNS. `by` is what a stratified sample is stratified by; `cut` the threshold that an
    uncertain sample is near to and that flags a fresh-flagged one; with `fresh`, of the flagged traces only those
    without a label and in no sample. `on_progress` is told how many traces of the pool are ranked, where scores rank
    them, and at last that all are: it ends the draw, of which nothing is kept, by raising.
    Raises BadInput for an unknown design, a bad size, a taken name, an empty pool;
    NoStrata for a pool that is not scored, or holds more strata than `size`.
    """
    _check(name, size, design, by, seed, cut)
    seed = secrets.randbits(31) if seed is None else seed
    rng = np.random.default_rng(seed)
    at, where = store.pools.moment(), readable(store, where)
    undated = store.traces.undated(where)
    if not store.traces.count(where, limit=1):
        raise _empty(undated, where)
    total = store.traces.count(where) if design in ("octave", "uncertain") else 0
    pool = _pool(store, design, where, at, by=by, cut=cut, fresh=fresh, on_rows=lambda rows: on_progress(rows, total))
    if size < len(pool.strata):
        n = len(pool.strata)
        raise frame.NoStrata(f"{n} strata need at least {n} labels, one each: --size {size} leaves some out")
    strata = {}
    members = []
    for stratum, n in designs.allocate(pool.strata, size).items():
        population = pool.strata[stratum]
        drawn = pool.draw(stratum, n, rng)
        strata[stratum] = (population, len(drawn))
        members += [Member(pk, len(drawn) / population, stratum) for pk in drawn]
    members = [members[i] for i in rng.permutation(len(members))]
    on_progress(total, total)
    return store.samples.add(
        name,
        design=design,
        by=by,
        seed=seed,
        pool=sum(pool.strata.values()),
        undated=undated,
        where=where,
        strata=strata,
        members=members,
        now=now,
        options=replace(pool.options, at=at),
    )


@dataclass(frozen=True)
class _Pool:
    """Strata with their populations, the function that draws from one, and the options that formed them."""

    strata: Mapping[str, int]
    draw: Callable[[str, int, np.random.Generator], list[int]]
    options: SampleOptions


def _pool(
    store: Store,
    design: str,
    where: TraceFilter,
    at: Moment,
    *,
    by: str | None,
    cut: Cut | None,
    fresh: bool,
    on_rows: frame.OnRows = frame.quietly,
) -> _Pool:
    """Without scores the traces are not even listed: the store draws among them."""
    if design in ("random", "stratified"):
        strata = store.traces.facet(where, by) if by else {frame.EVERYTHING: store.traces.count(where)}
        if by and set(strata) == {NONE}:
            raise BadInput(f"no trace of the pool has the attribute {by!r}, so there is nothing to stratify by")

        def looked_up(stratum: str, n: int, rng: np.random.Generator) -> list[int]:
            inside = (by, stratum) if by else None
            return store.traces.draw(where, n, population=strata[stratum], rng=rng, stratum=inside)

        return _Pool(strata, looked_up, SampleOptions())
    if cut is None:
        listing = frame.octave(store, where, at, on_rows)
    elif design == "uncertain":
        listing = frame.uncertain(store, where, at, cut, on_rows)
    else:
        listing = frame.flagged(store, where, at, cut, fresh=fresh)
        if not len(listing.keys):
            raise _nothing_flagged(store, where, at, cut, fresh=fresh)

    def listed(stratum: str, n: int, rng: np.random.Generator) -> list[int]:
        keys = listing.inside(stratum)
        return [int(key) for key in keys[designs.draw_ranks(rng, len(keys), n)]]

    return _Pool(listing.strata, listed, listing.options)


def _check(name: str, size: int, design: str, by: str | None, seed: int | None, cut: Cut | None) -> None:
    if not is_plain(name):
        raise BadInput(f"the sample's name {name!r} holds a line end or a control character: leave it out")
    if not name.strip() or len(name) > 200:
        raise BadInput(f"a sample needs a name of 1 to 200 characters, not {name[:40]!r}")
    if design not in designs.DESIGNS:
        raise BadInput(f"there is no design {design!r}; the designs are {', '.join(designs.DESIGNS)}")
    if design == "stratified" and not by:
        raise BadInput("a stratified sample needs --by: model, operation or an attribute of the traces")
    if design != "stratified" and by:
        raise BadInput(f"--by {by} is for --design stratified; the strata of a sample by {design} are not by attribute")
    if design in ("uncertain", "fresh-flagged") and cut is None:
        raise BadInput(f"a sample by {design} needs a threshold of one detector: --cut DETECTOR=THRESHOLD")
    if design not in ("uncertain", "fresh-flagged") and cut is not None:
        raise BadInput(f"a threshold is for --design uncertain or fresh-flagged; a sample by {design} has none")
    if seed is not None and not 0 <= seed < 2**63:
        raise BadInput(f"a seed is a whole number from 0 to 2^63 - 1, not {seed}")
    if size < 1:
        raise BadInput(f"a sample has at least one trace; --size {size} has not")


def _nothing_flagged(store: Store, where: TraceFilter, at: Moment, cut: Cut, *, fresh: bool) -> BadInput:
    name = frame.config_of(store, cut).name
    seen = frame.count_flagged(store, where, at, cut, fresh=False) if fresh else 0
    if seen:
        return BadInput(
            f"each of the {seen:,} traces that {name} flags at {cut.threshold:g} has a label or is in a sample "
            "already: import newer traces and score them, or widen the window"
        )
    return BadInput(
        f"{name} flags no trace of the window at {cut.threshold:g}: score the window first "
        f"(`{registry.how_to_score(name)}`, or the Detect page), widen it, or loosen the threshold"
    )


def _empty(undated: int, where: TraceFilter) -> BadInput:
    if undated and not where.undated:
        return BadInput(
            f"no dated trace is in the window; {undated} traces have no time: include them with --since all, "
            "or with 'Include undated traces' on the page"
        )
    return BadInput("no trace matches; widen the window (--since all) or the filters")
