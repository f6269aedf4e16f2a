"""What several detectors use. Nothing here is a detector."""
