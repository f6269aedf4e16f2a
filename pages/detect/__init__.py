"""Detect: run detectors, look at each."""
