"""Sentences, one module per kind of result, in the rooms of the workflow."""
