"""What Touchstone's statistics promise, measured on traffic whose truth is known. Seeded; no store, no files."""
