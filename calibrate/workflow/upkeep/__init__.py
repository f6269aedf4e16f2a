"""Keeping the store: back it up, check it, move it, take out what must not be kept."""
