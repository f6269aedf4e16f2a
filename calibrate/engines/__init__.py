"""Run detectors over traces: in this process, in worker processes, or on a Ray cluster."""
