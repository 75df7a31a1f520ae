"""Somebody who uses all of a server through the gateway, so that a suite can watch the gateway as its client.

Logs in where the server asks for it, accepts every form, and calls every tool.
"""

import ast
import asyncio
import json
import os
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, MCPError, types

from tests.kit.gateway import served
from toolsearch.errors import LoginRequiredError
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.tools.naming import SEPARATOR
from toolsearch.upstreams.logins import login

EXAMPLES = {"number": 2, "integer": 2, "boolean": True, "array": [], "object": {}}
DOCUMENT = "https://conformance-test.local/client-metadata.json"  # the suite's own client id metadata document
AT_ONCE = 4  # scenarios, of the dozens that the suite starts at the same time


@asynccontextmanager
async def users(folder: Path) -> AsyncIterator[int]:
    """Somebody for each scenario that asks at the port that this gives."""
    room = asyncio.Semaphore(AT_ONCE)

    async def serve(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        told = ast.literal_eval((await reading.readline()).decode())
        try:
            async with room:
                await use(told, folder / told["SCENARIO"])
        except Exception:  # noqa: BLE001  the suite shows it
            writing.write(traceback.format_exc().encode())
        writing.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def use(told: dict[str, str], state: Path) -> None:
    """Use the server of one scenario, which is as *told* in the suite's variables."""
    era = "auto" if told["PROTOCOL_VERSION"] >= "2026" else "legacy"
    config = {
        "mcpServers": {"suite": {"url": told["URL"], "mode": era}},
        "toolsearch": {
            "passThrough": {"maxTools": 100, "maxTokens": 100_000},
            "stateDir": str(state),
            "encoder": None,
        },
    }
    context = json.loads(told.get("CONTEXT", "{}"))
    calls = context.get("toolCalls")
    if told["SCENARIO"] == "auth/pre-registration":
        oauth = {"clientId": context["client_id"], "clientSecret": "${SUITE_SECRET}", "issuer": context["issuer"]}
        config["toolsearch"]["servers"] = {"suite": {"oauth": oauth}}
        os.environ["SUITE_SECRET"] = context["client_secret"]
    if told["SCENARIO"] == "auth/basic-cimd":
        config["toolsearch"]["servers"] = {"suite": {"oauth": {"clientId": DOCUMENT}}}
    if told["SCENARIO"].startswith("auth/"):
        await log_in(config, state)
    async with served(config, is_alone=False) as (_, url), Client(url, mode=era, elicitation_callback=accept) as client:
        if await use_all(client, calls) and told["SCENARIO"].startswith("auth/"):
            await log_in(config, state)
            await use_all(client, calls)


async def log_in(config: dict[str, Any], state: Path) -> None:
    async with httpx2.AsyncClient(follow_redirects=True) as browser, asyncio.TaskGroup() as visits:

        def show(text: str) -> None:
            _, has_address, address = text.partition("here: ")
            if has_address:
                visits.create_task(browser.get(address))

        with suppress(LoginRequiredError):  # some of what the suite offers must not be fallen for
            await login(read_gateway_config(config, os.environ).upstreams[0], state, show=show)


async def accept(_: Any, form: Any) -> types.ElicitResult:
    properties = form.requested_schema["properties"]
    return types.ElicitResult(
        action="accept", content={name: each.get("default", example(each)) for name, each in properties.items()}
    )


async def use_all(client: Client, calls: list[dict[str, Any]] | None) -> bool:
    """Make *calls*, or one of each tool; read each resource, get each prompt. Whether a login is wanted for that."""
    tools = {tool.name.partition(SEPARATOR)[2]: tool for tool in (await client.list_tools()).tools}
    tools.pop("", None)  # the gateway's own
    if calls is None:
        calls = [{"name": name, "arguments": example(tool.input_schema)} for name, tool in tools.items()]
    told: list[str] = []
    for call in calls:
        if call["name"] == "json_schema_echo":
            call["arguments"] = {"schema": tools["json_schema_2020_12_tool"].input_schema}
        with suppress(MCPError):
            result = await client.call_tool(tools[call["name"]].name, call["arguments"])
            told += [block.text for block in result.content if isinstance(block, types.TextContent)]
    for resource in (await client.list_resources()).resources:
        await client.read_resource(resource.uri)
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name)
    return not tools or any("wants a login" in text for text in told)


def example(schema: dict[str, Any]) -> Any:
    """Something that fits *schema*, as far as the suite's go."""
    if "properties" in schema:
        names = schema.get("required", schema["properties"])
        return {name: example(schema["properties"][name]) for name in names}
    return EXAMPLES.get(schema.get("type", ""), "x")
