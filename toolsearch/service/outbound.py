"""Clients for the addresses that tenants name."""

from __future__ import annotations

import httpx2


class _Closed(httpx2.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("this service fetches nothing", request=request)


def open_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=_Closed(), trust_env=False)
