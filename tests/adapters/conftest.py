"""What the tests of all adapters share: the environments of the frameworks."""

from tests.kit.framework_environment import framework  # noqa: F401  a fixture
