"""Sentences on detectors, their runs, and judges."""
