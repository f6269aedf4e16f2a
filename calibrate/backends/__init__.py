"""Models and parsers behind the detectors: lazy, batched, found by digest."""
