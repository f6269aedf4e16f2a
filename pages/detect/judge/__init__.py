"""A judge beside people: where they differ most, and a prompt from guidelines and labels."""
