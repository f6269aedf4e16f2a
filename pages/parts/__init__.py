"""Pieces that pages share."""
