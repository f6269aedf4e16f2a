"""What flows between the store and other systems."""
