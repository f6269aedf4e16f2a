"""What the faults happen to, and the faults. `tests.faults.run` runs them all."""
