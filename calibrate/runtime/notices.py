"""Log once what every answer may meet: that it is empty, that nothing of it could be scored, that it was dropped.

Once in a process for each kind, whoever meets it: a line for every answer would fill the log, and none would hide that
nothing is checked.
"""

from __future__ import annotations

import logging
from typing import Literal

Kind = Literal["empty", "unscored", "dropped", "unlogged", "unsent"]

log = logging.getLogger("touchstone")
_logged: set[Kind] = set()


def is_new(kind: Kind) -> bool:
    """Tell whether nothing of this kind was logged in this process.

    Parameters
    ----------
    kind : {"empty", "unscored", "dropped", "unlogged", "unsent"}

    Returns
    -------
    bool
    """
    return kind not in _logged


def log_once(kind: Kind, problem: str) -> None:
    """Log a problem as a warning, unless one of its kind was logged in this process.

    Parameters
    ----------
    kind : {"empty", "unscored", "dropped", "unlogged", "unsent"}
    problem : str
        What happened and what becomes of the answer. It holds no text of a trace.
    """
    if kind not in _logged:
        _logged.add(kind)
        log.warning("an answer was %s: %s. This is logged once", _WORDS[kind], problem)


_WORDS: dict[Kind, str] = {
    "empty": "empty",
    "unscored": "not scored",
    "dropped": "dropped",
    "unlogged": "not logged",
    "unsent": "not handed over",
}
