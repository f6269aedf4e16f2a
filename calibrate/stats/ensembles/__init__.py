"""Several detectors combined into one decision, and what the combination is worth."""
