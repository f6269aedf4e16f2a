"""Touchstone: find out where to set the thresholds of hallucination detectors, and how sure one may be."""

__version__ = "0.1.0"
