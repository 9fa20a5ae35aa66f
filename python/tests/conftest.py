"""What all tests share: a server of their own, and time limits on everything."""

from __future__ import annotations

import faulthandler
from typing import Iterator

import pytest

import clustergym

# A test that hangs shows where, and ends the run.
TIME_LIMIT = 120.0


@pytest.fixture(autouse=True)
def time_limit() -> Iterator[None]:
    faulthandler.dump_traceback_later(TIME_LIMIT, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLUSTERGYM_URL", "CLUSTERGYM_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """A server that runs as long as the tests."""
    with clustergym.LocalServer(timeout=60) as server:
        yield server.url


@pytest.fixture
def client(url: str) -> Iterator[clustergym.Client]:
    with clustergym.Client(url, timeout=20) as c:
        yield c
