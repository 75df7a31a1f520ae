"""The real programs that are run through the proxy."""

from tests.clients.conftest import programs
from tests.kit.framework_environment import framework

__all__ = ["framework", "programs"]
