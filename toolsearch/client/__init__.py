"""A typed client of the service: `ToolSearchClient`, and `AsyncToolSearchClient` with the same methods to be awaited.

    operations.py  what can be asked: each operation once, as a plain function that makes a request
    clients.py     these functions as methods of both clients
    exchange.py    sends a request, repeats it, waits, and reads the answer: once, with a plain and an async driver

Bodies are the models of `toolsearch.api`. An error is a `toolsearch.errors.ServiceError` with the service's code.
"""

from __future__ import annotations

import importlib.util

from toolsearch.errors import MissingExtraError

if importlib.util.find_spec("httpx2") is None:
    raise MissingExtraError("the client of the service", "client")

from toolsearch.client.clients import AsyncToolSearchClient, ToolSearchClient

__all__ = ["AsyncToolSearchClient", "ToolSearchClient"]
