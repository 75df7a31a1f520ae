"""What tests of several benchmarks use."""

import pytest

from tests.kit.readers import NO, FakeReader
from toolsearch_indexes.reader import Reader


@pytest.fixture
def no_tool_serves() -> Reader:
    """A reader that finds that no tool serves any request, so that what it has read is answered with nothing."""
    return FakeReader(otherwise=NO)
