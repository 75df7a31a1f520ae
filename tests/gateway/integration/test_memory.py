"""What a gateway loads for a search and a call: nothing that takes tens of megabytes and is not needed for them."""

from collections.abc import Callable

from tests.kit.commands import Ran

_SEARCHES_AND_CALLS = """
import asyncio, sys
import numpy as np
from benchmarks.gateway_calls import measure
from toolsearch_indexes.vectors import VectorPart

asyncio.run(measure(1))
rows, cosines = VectorPart.build(np.eye(4, dtype=np.float32)).search(np.eye(4, dtype=np.float32)[2], 1)
print(rows.tolist(), cosines.tolist(), sorted({"faiss", "regex", "tiktoken", "torch"} & set(sys.modules)))
"""


def test_a_gateway_that_has_searched_few_tools_and_called_one_has_loaded_neither_faiss_nor_a_tokenizer(
    run_python: Callable[..., Ran],
) -> None:
    assert run_python("-c", _SEARCHES_AND_CALLS).out == "[2] [1.0] []\n"


_IMPORTS_OF_A_GATEWAY = """
import sys
from toolsearch.lazy_packages import import_sdk_lazily

import_sdk_lazily()
import toolsearch.cli.gateway, toolsearch.gateway.gateway, toolsearch.gateway.reports.commands, toolsearch.gateway.stdio

print(sorted({"cryptography", "jwt", "mcp.server.mcpserver", "rapidfuzz"} & set(sys.modules)))
"""


def test_the_command_gateway_loads_neither_the_sdks_server_framework_nor_cryptography(
    run_python: Callable[..., Ran],
) -> None:
    assert run_python("-c", _IMPORTS_OF_A_GATEWAY).out == "[]\n"
