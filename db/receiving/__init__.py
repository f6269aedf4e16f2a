"""Requests with spans between their acknowledgement and their import, and traces whose spans come late."""
