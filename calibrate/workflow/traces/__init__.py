"""Traces come into the store."""
