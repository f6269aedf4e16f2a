"""Sentence embeddings: `embedder()` gives the process's model, `claims` and `cut` the texts to compare. For detector
authors; nothing is loaded before the first text."""

from calibrate.backends.embedding.model import PACKAGED, Embedder, embedder
from calibrate.backends.embedding.passages import Claim, Shortlist, Window, claims, cut, shortlist

__all__ = ["PACKAGED", "Claim", "Embedder", "Shortlist", "Window", "claims", "cut", "embedder", "shortlist"]
