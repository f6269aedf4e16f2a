"""What detectors need to know of a text. Detectors of other packages import from here."""

from __future__ import annotations

from calibrate.backends.text.segments import Part, Words, sentences, windows, words

__all__ = ["Part", "Words", "sentences", "windows", "words"]
