"""An API behind a real address: imported from its document, called with its credential, and again after a restart."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.kit.fake_servers import MODERN, call
from tests.kit.service import ServiceKit, serving
from toolsearch.service.corpora.corpus import CorpusRef

DEFAULT = CorpusRef("default", "catalog", "default")
LOOPBACK = {"allowed_networks": ["127.0.0.0/8"]}
KEY = "s3cret-key-of-the-api"
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Pets"},
    "servers": [{"url": "/v1"}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "security": [{"key": []}],
    "paths": {
        "/pets/{pet}": {
            "parameters": [{"name": "pet", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {"operationId": "get_pet", "summary": "Get a pet."},
            "put": {
                "operationId": "feed_pet",
                "summary": "Feed a pet.",
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"type": "object", "properties": {"food": {"type": "string"}}}}
                    }
                },
            },
        },
        "/moved": {"get": {"operationId": "moved", "summary": "Get what has moved."}},
    },
}


class Api:
    """What was asked, with the credential that came along."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None, Any]] = []

    async def document(self, _: Request) -> Response:
        return JSONResponse(DOCUMENT)

    async def pet(self, request: Request) -> Response:
        body = await request.body()
        key = request.headers.get("x-key")
        self.asked.append((request.method, request.url.path, key, json.loads(body) if body else None))
        if key != KEY:
            return JSONResponse({"detail": f"not {key}"}, 401)
        return JSONResponse({"name": request.path_params["pet"], "key": key})

    async def moved(self, _: Request) -> Response:
        return RedirectResponse("http://169.254.169.254/latest/meta-data/")

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        ready = asyncio.Event()

        class Uvicorn(uvicorn.Server):
            async def startup(self, sockets: Any = None) -> None:
                await super().startup(sockets)
                ready.set()

        routes = [
            Route("/openapi.json", self.document),
            Route("/v1/pets/{pet}", self.pet, methods=["GET", "PUT"]),
            Route("/v1/moved", self.moved),
        ]
        server = Uvicorn(uvicorn.Config(Starlette(routes=routes), port=0, log_config=None, ws="none"))
        task = asyncio.create_task(server.serve())
        await ready.wait()
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


async def called(kit: ServiceKit, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    async with kit.service.corpora.using(DEFAULT) as corpus:
        result = await call(corpus.gateway, tool, arguments, MODERN)
    return result["content"][0]["text"], bool(result.get("isError"))


async def add(kit: ServiceKit, url: str) -> dict[str, Any]:
    body = {"kind": "openapi", "name": "pets", "url": f"{url}/openapi.json", "credentials": {"key": KEY}}
    async with kit.client(kit.operator) as client:
        answer = await client.post("/v1/catalogs/default/sources", json=body)
        assert answer.status_code == 202, answer.text
        job = answer.json()["job"]["id"]
        await client.get(f"/v1/jobs/{job}/events")
        ended: dict[str, Any] = (await client.get(f"/v1/jobs/{job}")).json()
        return ended


async def test_an_api_is_called_with_its_credential_before_and_after_a_restart(tmp_path: Path) -> None:
    api = Api()
    async with api.served() as url:
        async with serving(tmp_path, outbound=LOOPBACK) as kit:
            await kit.catalog(kit.operator, tools=[])
            assert (await add(kit, url))["outcome"]["written"] == 3
            assert await called(kit, "pets__get_pet", {"pet": "tom"}) == ('{"name":"tom","key":"***"}', False)
        async with serving(tmp_path, outbound=LOOPBACK, seal=kit.service.seal) as kit:
            assert not (await called(kit, "pets__feed_pet", {"pet": "tom", "food": "fish"}))[1]
    assert api.asked == [("GET", "/v1/pets/tom", KEY, None), ("PUT", "/v1/pets/tom", KEY, {"food": "fish"})]


async def test_a_redirect_to_the_metadata_of_a_cloud_is_not_followed(tmp_path: Path) -> None:
    async with Api().served() as url, serving(tmp_path, outbound=LOOPBACK) as kit:
        await kit.catalog(kit.operator, tools=[])
        await add(kit, url)
        text, is_error = await called(kit, "pets__moved", {})
    assert is_error
    assert "redirects to" in text


async def test_an_api_of_the_operator_s_own_network_is_not_reached(tmp_path: Path) -> None:
    """Neither its document nor its operations, whoever names it."""
    api = Api()
    async with api.served() as url, serving(tmp_path) as kit:
        await kit.catalog(kit.operator, tools=[])
        assert "may not reach" in (await add(kit, url))["error"]["detail"]
        body: dict[str, Any] = {"kind": "openapi", "name": "inner", "document": DOCUMENT, "base_url": f"{url}/v1"}
        body["credentials"] = {"key": KEY}
        async with kit.client(kit.operator) as client:
            job = (await client.post("/v1/catalogs/default/sources", json=body)).json()["job"]["id"]
            await client.get(f"/v1/jobs/{job}/events")
        text, is_error = await called(kit, "inner__get_pet", {"pet": "tom"})
    assert is_error
    assert "may not reach" in text
    assert api.asked == []


async def test_a_catalog_is_deleted_with_its_sources(tmp_path: Path) -> None:
    async with Api().served() as url, serving(tmp_path, outbound=LOOPBACK) as kit:
        await kit.catalog(kit.operator, tools=[])
        await add(kit, url)
        async with kit.client(kit.operator) as client:
            assert (await client.delete("/v1/catalogs/default")).status_code == 204
            await kit.catalog(kit.operator, tools=[])
            answers: list[httpx2.Response] = [
                await client.get("/v1/catalogs/default/sources"),
                await client.get("/v1/catalogs/default/refused"),
            ]
    assert [each.json()["items"] for each in answers] == [[], []]
