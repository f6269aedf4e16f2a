"""Starts the workbench's server: `python -m pages.shell.serve [Streamlit's options]`.

Streamlit takes a folder called pages/ for a multipage app of its old kind until the first session has run `app.py`.
Until then a link to a page would end at "page not found". Switching that off before the start avoids it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamlit.runtime.pages_manager import PagesManager
from streamlit.web.cli import main

APP = Path(__file__).parents[2] / "app.py"

if __name__ == "__main__":
    PagesManager.uses_pages_directory = False
    sys.argv = ["streamlit", "run", str(APP), *sys.argv[1:]]
    sys.exit(main())
