"""Sentences on releases and what they change."""
