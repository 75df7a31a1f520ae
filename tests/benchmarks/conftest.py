"""What tests of several benchmarks use."""

from collections.abc import Sequence

import numpy as np
import pytest

from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.reader import Reader


class NoToolServes:
    """A reader that finds that no tool serves any request, so that what it has read is answered with nothing."""

    def knows(self, word: str) -> bool:  # noqa: ARG002
        return True

    def read(self, request: str, tools: Sequence[str]) -> FloatArray:  # noqa: ARG002
        return np.full(len(tools), -1_000, np.float32)


@pytest.fixture
def no_tool_serves() -> Reader:
    return NoToolServes()
