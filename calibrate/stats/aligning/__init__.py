"""A judge's prompt from a team's labels: which examples it quotes, and what a prompt gains over another."""
