"""The HTTP of MCP before 2025: what a connection leaves behind."""

import gc

import httpx2
import pytest

from tests.kit.upstream_actors import free_port
from toolsearch.upstreams.config import HttpServer
from toolsearch.upstreams.http import sse_streams


@pytest.mark.filterwarnings("error:Unclosed:ResourceWarning")
async def test_a_connection_that_cannot_be_made_leaves_no_stream_open() -> None:
    """A stream that is left open complains as it is collected, and pytest makes that an error of this test."""
    server = HttpServer("s", f"http://127.0.0.1:{free_port()}/sse", kind="sse")

    with pytest.raises(httpx2.ConnectError):
        async with sse_streams(server, None):
            raise AssertionError

    gc.collect()
