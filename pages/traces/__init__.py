"""Traces: browse them, import more."""
