"""Fixtures: prompts with fences and replies that are read strictly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calibrate.workspace import Workspace, using


@pytest.fixture(autouse=True)
def packaged() -> Iterator[None]:
    with using(Workspace()):
        yield
