"""The rail of detectors on the Thresholds page."""
