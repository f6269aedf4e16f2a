"""Run detectors over traces, in this process or in worker processes."""
