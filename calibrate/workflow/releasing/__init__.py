"""Operating points become a numbered release of the thresholds file."""
