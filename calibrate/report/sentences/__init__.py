"""Sentences, one module per kind of result."""
