"""What stands around every page: navigation, the open store, the user, errors. Pages use it as `shell.now()`."""

from pages.shell.cache import EVIDENCE, cached_read
from pages.shell.frame import guarded, log, page_frame, show_error, store
from pages.shell.navigation import page
from pages.shell.session import keep, now, restore, user

__all__ = [
    "EVIDENCE", "cached_read", "guarded", "keep", "log", "now", "page", "page_frame", "restore", "show_error", "store",
    "user",
]  # fmt: skip
