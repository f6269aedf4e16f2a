"""Starts the workbench's server: `python -m pages.shell.serve [Streamlit's options]`.

Two things that `streamlit run app.py` learns too late are settled here first: nothing is asked of the outside, and a
request comes from the address that its socket is connected to, whatever the request says.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from streamlit.web.cli import main

from calibrate import settings
from calibrate.errors import BadInput
from pages.shell import gate, roles

APP = Path(__file__).parents[2] / "app.py"

if __name__ == "__main__":
    try:
        roles.read(settings.identity().roles)
        settings.runs_here()
    except BadInput as error:
        print(f"touchstone: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    gate.prepare()
    os.environ["FORWARDED_ALLOW_IPS"] = ""
    sys.argv = ["streamlit", "run", str(APP), *sys.argv[1:]]
    sys.exit(main())
