"""A head learned from labels, on the Combine page."""
