"""Gold labels beside scores: what every sweep is made from."""
