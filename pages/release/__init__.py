"""Release: the saved points become the next version of the thresholds file."""
