"""Phoenix and MLflow, as their makers ship them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.servers import Server, environment, free_port, running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.integration)
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    python = environment("phoenix", "arize-phoenix==20.26")
    folder, port = tmp_path_factory.mktemp("phoenix"), free_port()
    variables = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    url = f"http://127.0.0.1:{port}"
    with running([str(python.with_name("phoenix")), "serve"], url, "/healthz", variables, folder / "log"):
        yield Server(url, python)


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    python = environment("mlflow", "mlflow==3.17.*")
    folder, port = tmp_path_factory.mktemp("mlflow"), free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        str(python), "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination", str(folder / "artifacts"), "--host", "127.0.0.1", "--port", str(port),
        "--workers", "1",
    ]  # fmt: skip
    variables = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}
    with running(command, url, "/health", variables, folder / "log"):
        yield Server(url, python)
