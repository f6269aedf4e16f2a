"""Code that several detectors share. Nothing here is a detector."""
