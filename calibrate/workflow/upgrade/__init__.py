"""A model or a detector changed: what traces show of it, and new thresholds."""
