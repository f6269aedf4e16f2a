"""Lists of what the store holds, a window at a time."""
