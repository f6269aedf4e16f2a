"""Stands in the navigation for every page that a person's roles do not open (pages/shell/navigation.py); never run."""
