"""The live status page and the metrics, for operators."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http_guard import NEVER_KEPT, page_headers
from toolsearch.gateway.reports.metrics import GatewayMetrics
from toolsearch.gateway.status import status_json

_INLINE = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)


def status_routes(gateway: Gateway) -> list[Route]:
    """The routes of the page, of its data and of metrics. The application has to guard them."""
    counted = GatewayMetrics(gateway)

    async def page(_: Request) -> Response:
        text, policy = _page()
        return Response(text, headers=page_headers(policy), media_type="text/html")

    async def figures(_: Request) -> Response:
        from toolsearch.gateway.reports.exposition import CONTENT_TYPE

        return Response(await counted.text(), headers=NEVER_KEPT, media_type=CONTENT_TYPE)

    async def status(_: Request) -> Response:
        return Response(status_json(gateway.status()), headers=NEVER_KEPT, media_type="application/json")

    return [Route("/", page), Route("/status", page), Route("/status.json", status), Route("/metrics", figures)]


@cache
def _page() -> tuple[str, str]:
    """The page, with a policy that allows only its own scripts, styles and resources."""
    text = resources.files("toolsearch.gateway.reports").joinpath("page.html").read_text("utf-8")
    sources = {f"{kind}-src": _hash(content) for kind, content in _INLINE.findall(text)}
    rules = {"default-src": "'none'", "connect-src": "'self'", "base-uri": "'none'", "form-action": "'none'", **sources}
    return text, "; ".join(f"{name} {source}" for name, source in rules.items())


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
