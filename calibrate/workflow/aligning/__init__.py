"""A judge's prompt is made from the team's guidelines and labels, compared with the one in use, and saved."""
