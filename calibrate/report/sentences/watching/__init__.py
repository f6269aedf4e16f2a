"""Sentences on what happens after a release: drift, gates, the week."""
