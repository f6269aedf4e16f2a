"""The list of traces beside the open one: its rows come a window at a time, however many traces there are."""
