"""What a file holds, before and while it is imported: its first records, and which fields are filled."""
