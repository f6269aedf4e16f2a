"""The one way in which a page caches what it reads from the store."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from db import Group, Revision, Store

P = ParamSpec("P")
T = TypeVar("T")
Read = Callable[Concatenate[Store, P], T]

EVIDENCE: tuple[Group, ...] = ("traces", "samples", "labels", "scores")  # what labels beside scores are read from


def cached_read(spinner: str | None, *groups: Group, entries: int = 50) -> Callable[[Read[P, T]], Read[P, T]]:
    """Keep what a read of the store returns until one of these groups of tables is written to.

    Without groups every write counts. The arguments are part of the key, except those whose names begin with an
    underscore. All sessions get the same object, so nobody may change it.
    """

    def decorate(read: Read[P, T]) -> Read[P, T]:
        signature = inspect.signature(read)

        def fetch(url: str, revision: Revision, arguments: dict[str, Any], _store: Store, _rest: dict[str, Any]) -> T:
            return read(_store, **arguments, **_rest)  # type: ignore[call-arg]

        # Streamlit tells cached functions apart by their names.
        fetch.__module__, fetch.__qualname__ = read.__module__, read.__qualname__
        cached = st.cache_resource(max_entries=entries, show_spinner=spinner or False)(fetch)

        @wraps(read)
        def call(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
            bound = signature.bind(store, *args, **kwargs)
            bound.apply_defaults()
            _, *rest = bound.arguments.items()
            keys = {name: value for name, value in rest if not name.startswith("_")}
            unkeyed = {name: value for name, value in rest if name.startswith("_")}
            return cached(store.url, store.revision(*groups), keys, store, unkeyed)

        return call

    return decorate
