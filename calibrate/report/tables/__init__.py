"""Tables, each column declared once: a page, the terminal, a file and JSON show the same ones."""
