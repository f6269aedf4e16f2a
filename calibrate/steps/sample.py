"""Sample: look at the pool, draw members with known inclusion probabilities, keep them."""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from calibrate import sampling
from calibrate.errors import BadInput
from calibrate.types import Member, Sample, TraceFilter
from db import Store
from db.traces import NONE

DESIGNS = ("random", "stratified")
EVERYTHING = "all"


@dataclass(frozen=True, slots=True)
class Pool:
    """What a sample would be drawn from. `undated` traces match the filter but carry no time; they are in `size` only
    when the filter lets them in. `facets` counts the pool by attribute."""

    size: int
    undated: int
    facets: Mapping[str, Mapping[str, int]]


def look(store: Store, where: TraceFilter, *, by: tuple[str, ...] = ("model", "operation")) -> Pool:
    """The pool that `where` makes."""
    facets = {name: store.traces.facet(where, name) for name in by}
    size = sum(next(iter(facets.values())).values()) if facets else store.traces.count(where)
    return Pool(size, store.traces.undated(where), facets)


def draw(
    store: Store,
    name: str,
    *,
    size: int,
    design: str,
    by: str | None,
    where: TraceFilter,
    seed: int | None,
    now: datetime,
) -> Sample:
    """Draws and keeps a sample; its members are in random order, so that labelling half of it is half a sample.

    Raises BadInput for an unknown design, a bad size, a taken name or an empty pool.
    """
    _check(name, size, design, by, seed)
    seed = secrets.randbits(31) if seed is None else seed
    rng = np.random.default_rng(seed)
    pool = _strata(store, where, by) if design == "stratified" else {EVERYTHING: store.traces.count(where)}
    population = sum(pool.values())
    undated = store.traces.undated(where)
    if population == 0:
        raise BadInput(_empty(undated, where))
    if design == "stratified" and set(pool) == {NONE}:
        raise BadInput(f"no trace of the pool has the attribute {by!r}, so there is nothing to stratify by")
    if size < len(pool):
        raise BadInput(f"{len(pool)} strata need at least {len(pool)} labels, one each; --size {size} leaves some out")
    strata = {}
    members = []
    for stratum, n in sampling.allocate(pool, size).items():
        inside = (by, stratum) if design == "stratified" and by else None
        drawn = store.traces.draw(where, n, population=pool[stratum], rng=rng, stratum=inside)
        strata[stratum] = (pool[stratum], len(drawn))
        members += [Member(pk, len(drawn) / pool[stratum], stratum) for pk in drawn]
    members = [members[i] for i in rng.permutation(len(members))]
    return store.samples.add(
        name,
        design=design,
        by=by,
        seed=seed,
        pool=population,
        undated=undated,
        where=where,
        strata=strata,
        members=members,
        now=now,
    )


def _check(name: str, size: int, design: str, by: str | None, seed: int | None) -> None:
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name):
        raise BadInput(f"the sample's name {name!r} holds a line end or a control character: leave it out")
    if not name.strip() or len(name) > 200:
        raise BadInput(f"a sample needs a name of 1 to 200 characters, not {name[:40]!r}")
    if design not in DESIGNS:
        raise BadInput(f"there is no design {design!r}; the designs are {', '.join(DESIGNS)}")
    if design == "stratified" and not by:
        raise BadInput("a stratified sample needs --by: model, operation or an attribute of the traces")
    if design == "random" and by:
        raise BadInput(f"--by {by} is for --design stratified; a random sample has no strata")
    if seed is not None and not 0 <= seed < 2**63:
        raise BadInput(f"a seed is a whole number from 0 to 2^63 - 1, not {seed}")
    if size < 1:
        raise BadInput(f"a sample has at least one trace; --size {size} has not")


def _strata(store: Store, where: TraceFilter, by: str | None) -> dict[str, int]:
    assert by is not None
    return store.traces.facet(where, by)


def _empty(undated: int, where: TraceFilter) -> str:
    if undated and not where.undated:
        return (
            f"no dated trace is in the window; {undated} traces have no time: include them with --since all, "
            "or with 'Include undated traces' on the page"
        )
    return "no trace matches; widen the window (--since all) or the filters"
