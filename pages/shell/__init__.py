"""What stands around every page: navigation, the open store, the user, errors. Pages use it as `shell.now()`."""

from pages.shell.cache import EVIDENCE, cached_read
from pages.shell.frame import errors_kept, guarded, page_frame, show_error, show_kept_error, store
from pages.shell.identity import has_role, may_open, may_type_a_name, person, require, user
from pages.shell.navigation import page
from pages.shell.session import keep, now, restore

__all__ = [
    "EVIDENCE", "cached_read", "errors_kept", "guarded", "has_role", "keep", "may_open", "may_type_a_name", "now",
    "page", "page_frame", "person", "require", "restore", "show_error", "show_kept_error", "store", "user",
]  # fmt: skip
