"""The store as a whole: copies of it, whether it is sound, moving it, and taking people's data out of it."""
