"""Detectors run over traces."""
