"""The steps of the loop, composed with the store: the CLI and the pages call these same functions."""
