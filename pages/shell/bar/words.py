"""What the help behind `?` says: the keys that work on every page, the words, where the documentation is."""

from __future__ import annotations

KEYS = (
    ("Ctrl K", "go to a page, a detector or a trace"),
    ("Tab, Shift Tab", "to the next control, or the one before"),
    ("A · X · U", "on Label: clean, hallucinated, unsure"),
    ("Space · Backspace", "on Label: skip, back"),
    ("Esc", "close what is open"),
)
WORDS = (
    ("trace", "one logged question and answer, with what the application knew: its sources and the like"),
    ("sample", "traces drawn for labelling, with each one's chance of being drawn"),
    ("label", "one person's verdict on one trace: clean, hallucinated or unsure"),
    ("disputed", "two people contradict each other; the trace counts once somebody decides"),
    ("detector", "turns a trace into a score, or says why it cannot"),
    ("flag", "what a detector does to a trace on the suspicious side of its threshold"),
    ("precision", "of what is flagged, the share that is hallucinated"),
    ("recall", "of what is hallucinated, the share that is flagged"),
    ("interval", "where the true figure lies in 95 of 100 such samples"),
    ("policy", "the rule that chooses a threshold: a precision to hold, a recall, flags a day"),
    ("certified", "a precision that was tested on fresh labels, so that few such claims are wrong"),
    ("release", "one numbered, unchangeable version of the thresholds"),
    ("tier", "what a flag does in production: page, signal or off"),
    ("drift", "a change in scores since the release"),
    ("recheck", "labels of what is flagged now, to see whether the precision still holds"),
)  # fmt: skip
DOCUMENTATION = "docs/index.md in the project's folder: the first hour, how-tos, what the figures mean."
