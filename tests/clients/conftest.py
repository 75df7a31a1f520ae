"""Real coding agents out of npm, installed when a test first needs them, and time to install them."""

import pytest

from benchmarks.clients.installing import Programs, pinned
from benchmarks.environments import NotInstalledError
from tests.kit.framework_environment import environments_folder

_TO_INSTALL_S = 600  # 2 GB, over whatever network there is


def pytest_itemcollected(item: pytest.Item) -> None:
    if "programs" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.timeout(_TO_INSTALL_S))


@pytest.fixture(scope="session")
def programs() -> Programs:
    try:
        return pinned(environments_folder())
    except NotInstalledError as error:
        pytest.skip(f"the coding agents cannot be installed here: {error}")
