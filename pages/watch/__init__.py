"""Watch: models, drift, rechecks and recalibration after a release."""
