"""Designs of a sample: strata, allocation, inclusion probabilities and sample size."""
