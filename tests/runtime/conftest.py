"""Fixtures: each test hears what a process says only once."""

from __future__ import annotations

import pytest

from calibrate.runtime import notices


@pytest.fixture(autouse=True)
def nothing_logged_yet() -> None:
    notices._logged.clear()
