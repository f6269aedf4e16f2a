"""Models and parsers behind the detectors: loaded on first use, batched, identified by digest."""
