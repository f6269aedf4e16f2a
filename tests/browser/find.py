"""The browser that the tests drive: the system's, else the one Playwright has installed."""

from __future__ import annotations

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find() -> str | None:
    """The path of a Chromium or Chrome, or None."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            path = playwright.chromium.executable_path
        return path if os.path.exists(path) else None
    except Exception:
        return None


if __name__ == "__main__":
    found = find()
    print(found or "none")
    sys.exit(0 if found else 1)
