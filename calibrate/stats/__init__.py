"""The statistics of a threshold: arrays and dataclasses in and out. No file, network, clock or global random state."""
