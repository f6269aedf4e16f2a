"""Sentences on samples, labels and how far people agree."""
