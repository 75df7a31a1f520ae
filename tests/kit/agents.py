"""An agent of a service: a catalog with tools that run here, that fail, and that live with the caller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.kit.service import ServiceKit, serving
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.tools.function_tools import tool_from_function

ALWAYS_SEARCH: dict[str, Any] = {"pass_through": {"max_tools": 0}}
CATALOG = CorpusRef("default", "catalog", "default")
THEIRS = [
    {
        "name": "book_flight",
        "description": "Book a flight to a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    {"name": "pay_bill", "description": "Pay a bill with money."},
]


def double(n: int) -> dict[str, int]:
    """Double a number."""
    return {"twice": 2 * n}


def fail(n: int) -> str:
    """Divide a number by nothing."""
    raise ValueError(f"no {n} today")


@asynccontextmanager
async def agents(folder: Path, **sections: dict[str, Any]) -> AsyncIterator[tuple[ServiceKit, httpx2.AsyncClient]]:
    """A service with that catalog, and a client with all scopes. Its tools are searched, however few they are."""
    async with serving(folder, **{**ALWAYS_SEARCH, **sections}) as kit:
        await kit.catalog(kit.operator, tools=THEIRS)
        async with kit.service.corpora.using(CATALOG) as corpus:
            corpus.engine.catalog.put(tool_from_function(double), tool_from_function(fail))
            yield kit, kit.client(kit.operator)


async def opened(client: httpx2.AsyncClient, **body: Any) -> str:
    answer = await client.post("/v1/sessions", json=body)
    assert answer.status_code == 201, answer.text
    session: str = answer.json()["id"]
    return session


async def done(client: httpx2.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def receipts(client: httpx2.AsyncClient, **asked: Any) -> list[tuple[str, str, str, str]]:
    """Of each call tool, decision, outcome and code; the newest first."""
    items = (await client.get("/v1/receipts", params=asked)).json()["items"]
    return [(each["tool"], each["decision"], each["outcome"], each["code"]) for each in items]
