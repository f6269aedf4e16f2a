"""Append what a program answered to the store, from a thread of its own. Standard library only."""

from calibrate.runtime.tracelog.log import LogCounters, TraceLog

__all__ = ["LogCounters", "TraceLog"]
