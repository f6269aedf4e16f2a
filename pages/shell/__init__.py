"""What stands around every page: navigation, the store at hand, the server."""
