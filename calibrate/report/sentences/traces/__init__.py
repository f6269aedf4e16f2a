"""Sentences on traces: imports, pulls, purges, and the store that holds them."""
