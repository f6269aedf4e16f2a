"""The steps of the loop, composed with the store. The CLI and the pages call these functions."""
