"""Samples are planned, drawn and topped up."""
