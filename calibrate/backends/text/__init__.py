"""Words, sentences and windows of a text. For detector authors."""

from __future__ import annotations

from calibrate.backends.text.segments import Part, Words, sentences, windows, words

__all__ = ["Part", "Words", "sentences", "windows", "words"]
