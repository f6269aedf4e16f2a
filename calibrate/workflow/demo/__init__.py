"""Demo: a store with the life of a made-up shop's assistant in it, made by the functions that pages and verbs call."""
