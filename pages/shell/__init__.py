"""What stands around every page: navigation, the open store, the user, errors. Pages use it as `shell.now()`."""

from pages.shell.cache import EVIDENCE, cached_read
from pages.shell.frame import errors_kept, guarded, page_frame, show_error, show_kept_error, store
from pages.shell.navigation import page
from pages.shell.session import keep, now, restore, user

__all__ = [
    "EVIDENCE", "cached_read", "errors_kept", "guarded", "keep", "now", "page", "page_frame", "restore", "show_error",
    "show_kept_error", "store", "user",
]  # fmt: skip
