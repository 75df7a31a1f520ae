"""Tools of a real server that become tasks there, for clients that follow tasks and for those that do not."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client

from tests.kit.gateway import SERVERS, served, text
from tests.kit.person import Person

KNOWS = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
CALL_TOOL = "callToolDestructive"  # the tools say nothing of their safety


def behind(folder: Path, mode: str) -> dict[str, Any]:
    server = {"command": sys.executable, "args": [str(SERVERS / "tasks_server.py")], "mode": mode}
    return {"mcpServers": {"it": server}, "toolsearch": {"stateDir": str(folder)}}


def called(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": CALL_TOOL, "arguments": {"name": f"it__{name}", "arguments": arguments}}


class Wire:
    """A client over HTTP in plain JSON, since the SDK's knows no tasks."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http = http
        self._url = url
        self.session = ""

    async def of_2026(self, method: str, capabilities: dict[str, Any] = KNOWS, **params: Any) -> dict[str, Any]:
        headers, sent = self._asked(method, capabilities, params)
        return await self._post(headers, method, sent)

    @staticmethod
    def _asked(
        method: str, capabilities: dict[str, Any], params: dict[str, Any]
    ) -> tuple[dict[str, str], dict[str, Any]]:
        key = "io.modelcontextprotocol"
        meta = {f"{key}/protocolVersion": "2026-07-28", f"{key}/clientCapabilities": capabilities}
        named = params.get("name", params.get("taskId", ""))
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": named}
        return headers, {**params, "_meta": meta}

    @asynccontextmanager
    async def listening(self, *task_ids: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The messages of a stream that is told of tasks."""
        headers, params = self._asked("subscriptions/listen", KNOWS, {"notifications": {"taskIds": task_ids}})
        sent = message("subscriptions/listen", params)
        async with self._http.stream("POST", self._url, headers={**ACCEPTS, **headers}, json=sent) as answer:
            lines = answer.aiter_lines()
            yield (json.loads(line.removeprefix("data: ")) async for line in lines if line.startswith("data: {"))

    async def of_2025(self, method: str, **params: Any) -> dict[str, Any]:
        version = {"mcp-protocol-version": "2025-11-25", "mcp-session-id": self.session}
        return await self._post(version, method, params)

    async def shake_hands(self) -> dict[str, Any]:
        client = {"clientInfo": {"name": "wire", "version": "1"}, "capabilities": {}}
        opened = await self._http.post(
            self._url, headers=ACCEPTS, json=message("initialize", {"protocolVersion": "2025-11-25", **client})
        )
        self.session = opened.headers["mcp-session-id"]
        await self._http.post(
            self._url,
            headers={**ACCEPTS, "mcp-session-id": self.session},
            json={"jsonrpc": "2.0", "method": "notifications/initialized"},
        )
        return read(opened)

    async def _post(self, headers: dict[str, str], method: str, params: dict[str, Any]) -> dict[str, Any]:
        return read(await self._http.post(self._url, headers={**ACCEPTS, **headers}, json=message(method, params)))


ACCEPTS = {"accept": "application/json, text/event-stream"}


def message(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def read(answer: httpx2.Response) -> dict[str, Any]:
    if answer.headers["content-type"].startswith("application/json"):
        said = answer.json()
    else:
        lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
        said = httpx2.Response(200, text=lines[-1]).json()
    return said.get("result") or said["error"]


@asynccontextmanager
async def wire(config: dict[str, Any]) -> AsyncIterator[Wire]:
    async with served(config) as (_, url), httpx2.AsyncClient(timeout=30) as http:
        yield Wire(http, url)


async def ended(ask: Any, task_id: str) -> dict[str, Any]:
    """The task once it has ended, or asks something; its servers are quick."""
    async with asyncio.timeout(30):
        while (task := await ask("tasks/get", taskId=task_id))["status"] == "working":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return task


@pytest.mark.parametrize("server_era", ["legacy", "auto"])
@pytest.mark.parametrize("client_era", ["legacy", "auto"])
async def test_a_client_that_knows_no_tasks_gets_the_plain_result_and_is_asked_on_the_way(
    client_era, server_era, tmp_path
):
    ann = Person("Ann")
    async with (
        served(behind(tmp_path, server_era)) as (gateway, url),
        Client(url, mode=client_era, **ann.callbacks) as client,
    ):
        failed = await client.call_tool(CALL_TOOL, {"name": "it__failing_job", "arguments": {}})
        assert (text(failed), failed.is_error, failed.meta) == ("it failed", True, failed.meta)
        assert "related-task" not in str(failed.meta)
        greeted = await client.call_tool(CALL_TOOL, {"name": "it__greet", "arguments": {"name": "Ann"}})
        assert text(greeted) == "Hello, Ann!"
        assert gateway.upstreams["it"].is_modern == (server_era == "auto")


@pytest.mark.parametrize("server_era", ["legacy", "auto"])
async def test_a_client_of_2026_follows_a_task_found_by_search_and_answers_its_questions(server_era, tmp_path):
    async with wire(behind(tmp_path, server_era)) as client:
        made = await client.of_2026("tools/call", **called("confirm_delete"))
        assert made["resultType"] == "task"
        task = await ended(client.of_2026, made["taskId"])
        assert task["status"] == "input_required"
        (key,) = task["inputRequests"]
        assert task["inputRequests"][key]["params"]["message"] == "Delete it?"
        answers = {key: {"action": "accept", "content": {}}}
        await client.of_2026("tasks/update", taskId=made["taskId"], inputResponses=answers)
        task = await ended(client.of_2026, made["taskId"])
        assert task["result"]["content"][0]["text"] == "deleted: accept"
        assert "job-" not in str(task)  # the server's own id of it
        assert (await client.of_2026("tasks/get", {}, taskId=made["taskId"]))["code"] == -32021


@pytest.mark.parametrize("server_era", ["legacy", "auto"])
async def test_a_client_of_2025_asks_for_a_task_lists_it_fetches_its_result_and_cancels_another(server_era, tmp_path):
    async with wire(behind(tmp_path, server_era)) as client:
        opened = await client.shake_hands()
        assert opened["capabilities"]["tasks"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        made = await client.of_2025("tools/call", **called("slow_compute", label="it"), task={"ttl": 60_000})
        task_id = made["task"]["taskId"]
        result = await client.of_2025("tasks/result", taskId=task_id)
        assert result["content"][0]["text"] == "computed it"
        assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task_id}
        assert [each["taskId"] for each in (await client.of_2025("tasks/list"))["tasks"]] == [task_id]
        assert (await client.of_2025("tasks/cancel", taskId=task_id))["code"] == -32602

        endless = await client.of_2025("tools/call", **called("forever"), task={})
        cancelled = await client.of_2025("tasks/cancel", taskId=endless["task"]["taskId"])
        assert cancelled["status"] == "cancelled"
        assert (await client.of_2025("tasks/update", taskId=task_id, inputResponses={}))["code"] == -32601


async def test_a_stream_is_told_how_a_task_goes_on(tmp_path):
    async with wire(behind(tmp_path, "auto")) as client:
        made = await client.of_2026("tools/call", **called("confirm_delete"))
        task = await ended(client.of_2026, made["taskId"])
        async with client.listening(made["taskId"], "unknown") as told:
            acknowledged = await anext(told)
            assert acknowledged["params"]["notifications"] == {"taskIds": [made["taskId"]]}
            answers = {key: {"action": "decline"} for key in task["inputRequests"]}
            await client.of_2026("tasks/update", taskId=made["taskId"], inputResponses=answers)
            states = []
            async for each in told:
                assert each["method"] == "notifications/tasks"
                assert each["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 1}
                states.append(each["params"]["status"])
                if states[-1] == "completed":
                    break
            assert states == ["working", "completed"]
            assert each["params"]["result"]["content"][0]["text"] == "deleted: decline"
        async with client.listening(made["taskId"]) as told:  # it has ended before, which is told as well
            await anext(told)
            assert (await anext(told))["params"]["status"] == "completed"
        notifications = {"taskIds": [made["taskId"]]}
        assert (await client.of_2026("subscriptions/listen", {}, notifications=notifications))["code"] == -32021


async def test_a_server_that_ends_with_its_tasks_ends_them_here(tmp_path):
    async with wire(behind(tmp_path, "auto")) as client:
        made = await client.of_2026("tools/call", **called("crash"))
        task = await ended(client.of_2026, made["taskId"])
        assert (task["status"], task["error"]["message"]) == ("failed", "Task not found")
