"""The threshold chart: scores by label, precision and recall over them, and the handle that sets the threshold.

The arrays go to the browser once; there the handle, the figures and the verdict move without the server. Python is told
when the handle rests (`follow`), and tells back what holds there.
"""
