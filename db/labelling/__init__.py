"""How labels come to be: the team's guide, who labels what, and what is kept beside a label."""
