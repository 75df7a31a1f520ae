"""What the tests of all adapters share: the environments of the frameworks, and time to install them."""

import pytest

from tests.kit.framework_environment import framework  # noqa: F401  a fixture


def pytest_itemcollected(item: pytest.Item) -> None:
    """The first test of a framework makes its environment: up to a gigabyte, over whatever network there is."""
    item.add_marker(pytest.mark.timeout(600))
