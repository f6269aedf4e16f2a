"""Sentences on thresholds: sweeps, points, certificates, ensembles."""
