"""A model or a detector changed: what is seen of it, and new thresholds."""
