"""Traces, scores and labels are fetched from the systems that hold them."""
