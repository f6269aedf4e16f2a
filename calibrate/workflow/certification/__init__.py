"""A threshold is certified in two stages."""
