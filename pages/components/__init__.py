"""Widgets that two or more pages share."""
