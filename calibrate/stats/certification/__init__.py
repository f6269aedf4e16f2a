"""Certified thresholds: plan on the first labels, prove on labels drawn afterwards."""
