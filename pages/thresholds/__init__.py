"""Thresholds: tune, compare, combine, and see which detector is best."""
