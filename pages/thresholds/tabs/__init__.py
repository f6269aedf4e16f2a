"""Tabs of the details below the threshold that have a file of their own."""
