"""This week: where the loop stands and the one thing to do next."""
