"""What the team keeps in a store for detectors to use."""

from __future__ import annotations

from calibrate.workspace import Budget, Workspace
from db import Store


def workspace_of(store: Store, *, budget: float | None = None) -> Workspace:
    """The team's files, baselines and cached replies. `budget`: US dollars that may be spent."""
    return Workspace(
        files=store.files.current(),
        baselines=store.baselines.current(),
        replies=store.replies,
        budget=Budget(budget) if budget is not None else None,
    )
