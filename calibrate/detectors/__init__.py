"""One file per detector; a file that is put here is found."""
