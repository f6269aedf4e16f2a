"""A release in production: decisions, drift, rechecks."""
