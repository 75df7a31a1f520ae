"""Operations of an OpenAPI document that can be called: with your HTTP client, and a key that no model sees.

Needs `pip install '.[client]'`, for an HTTP client. The key comes from ORDERS_API_KEY; the shop that is called is a
small server on this machine, which takes one key only.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2

from toolsearch import Catalog, HttpRequest, JsonObject, ToolSearch
from toolsearch.errors import ToolExecutionError

KEY = "key-of-the-shop"


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        order = self.path.rpartition("/")[2]
        if self.headers["X-Api-Key"] != KEY:
            self._answer(401, {"error": "no such key"})
        elif order != "A1":
            self._answer(404, {"error": f"no order {order}"})
        else:
            self._answer(200, {"id": order, "state": "shipped"})

    def _answer(self, status: int, body: JsonObject) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002  the base class has it
        """Say nothing."""


async def ask(url: str, key: str) -> None:
    async with httpx2.AsyncClient(base_url=url, headers={"X-Api-Key": key}) as http:

        async def caller(request: HttpRequest) -> object:
            """Send *request* to our shop, and our key nowhere else: the document's own address is left aside."""
            response = await http.request(
                request.method, request.path, params=request.query, headers=dict(request.headers), json=request.body
            )
            if response.is_error:
                raise ToolExecutionError(  # a model reads it, and the log has no traceback
                    f"the shop answered {response.status_code}: {response.text}"
                )
            return response.json()

        catalog = Catalog.from_openapi(Path(__file__).with_name("orders.yaml"), caller=caller)
        with ToolSearch(catalog) as engine:
            session = engine.session("ada", deny=["class:destructive"])  # nothing that a document marks as DELETE
            [found] = session.search("state of an order", limit=1)
            print("a model sees:", found.name, list(catalog.get(found.name).definition.input_schema["properties"]))
            for name, order in ((found.name, "A1"), (found.name, "B7"), ("orders__cancelOrder", "A1")):
                result = await session.call(name, {"id": order})
                print(f"{name}({order}):", "failed," if result.is_error else "gave", result.text)


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asyncio.run(ask(f"http://127.0.0.1:{server.server_port}", os.environ.get("ORDERS_API_KEY", KEY)))
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
