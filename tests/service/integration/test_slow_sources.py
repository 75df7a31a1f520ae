"""Sources whose servers drip hold up their own tenant alone, and not for ever."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.kit.service import serving

LISTING = json.dumps([{"name": "one", "description": "The only tool."}]).encode()


@asynccontextmanager
async def dripping_server(dripping: list[str]) -> AsyncIterator[str]:
    """Answers every path but ``/quick`` by a byte every 20 ms, for ever."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        try:
            if path == "/quick":
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(LISTING), LISTING))
                return
            writer.write(b"Content-Length: 1000000\r\n\r\n")
            dripping.append(path)
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_two_dripping_sources_of_one_tenant_hold_up_no_other_and_end_with_their_time(tmp_path: Path) -> None:
    """They are never silent, and never done."""
    dripping: list[str] = []
    async with (
        dripping_server(dripping) as url,
        serving(
            tmp_path,
            imports={"at_once": 2, "timeout_s": 10},
            outbound={"allowed_hosts": ["127.0.0.1"]},
        ) as kit,
    ):
        slow, quick = kit.key("acme"), kit.key("other")
        jobs: dict[str, str] = {}
        for key, name in ((slow, "a"), (slow, "b"), (quick, "quick")):
            client = kit.client(key)
            await client.post("/v1/catalogs", json={"name": "default"})
            body = {"name": name, "kind": "listing", "url": f"{url}/{name}"}
            added = await client.post("/v1/catalogs/default/sources", json=body)
            assert added.is_success, added.text
            jobs[name] = added.json()["job"]["id"]
            while name != "quick" and f"/{name}" not in dripping:  # noqa: ASYNC110  until its turn has begun
                await asyncio.sleep(0.01)
        done = await kit.service.imports.jobs.ended("other", jobs["quick"])
        states = [(await kit.service.imports.jobs.get("acme", jobs[name])).state for name in "ab"]
        ends = [await kit.service.imports.jobs.ended("acme", jobs[name]) for name in "ab"]
        sources = (await kit.client(slow).get("/v1/catalogs/default/sources")).json()["items"]

    assert (done.state, states) == ("done", ["running", "running"])
    assert [(end.state, end.code) for end in ends] == [("failed", "source_error")] * 2
    assert all("after 10 s" in end.error for end in ends)
    assert all("after 10 s" in json.dumps(each) for each in sources)
