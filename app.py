"""The workbench's server. `streamlit run app.py`, or `make app`, which sets everything up first.

Streamlit finds `app` here; what a session runs is pages/shell/workbench.py.
"""

from __future__ import annotations

from streamlit.starlette import App

from pages.components.labelling import routes
from pages.shell import gate, health
from pages.traces.trace_list import routes as trace_list

gate.prepare()
app = App(
    "pages/shell/workbench.py",
    routes=[*routes.routes(), *trace_list.routes(), *health.routes()],
    middleware=gate.middleware(),
    lifespan=gate.lifespan,
)
