"""Thresholds, detectors and ensembles are compared and chosen."""
