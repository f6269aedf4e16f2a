"""Touchstone: find out where to set the thresholds of hallucination detectors, and how sure one may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrate.workflow.notebook import Workbench

__version__ = "0.1.0"


def open(url: str | None = None, *, create: bool = True) -> Workbench:
    """Open a store to work on in a notebook or a script, with frames in and frames out.

    Parameters
    ----------
    url : str, optional
        The store: ``sqlite:///touchstone.db`` or ``postgresql://…``. Default: what TOUCHSTONE_STORE says.
    create : bool
        Whether an SQLite file that is not there is made.

    Returns
    -------
    Workbench
        Close it after use, or open it with ``with``.

    Raises
    ------
    BadInput
        A URL that is no store.
    StoreError
        A store that cannot be opened now.
    Unavailable
        The workbench is not installed here.
    """
    from importlib.util import find_spec

    from calibrate.errors import Unavailable

    if find_spec("db") is None:
        raise Unavailable(
            "calibrate.open needs the workbench, which is not installed here: get Touchstone's source, run "
            "`make setup` in its folder, and start the notebook there"
        )
    from calibrate.workflow.notebook import open_workbench

    return open_workbench(url, create=create)
