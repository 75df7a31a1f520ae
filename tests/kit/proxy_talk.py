"""Conversations of a strict client through the proxy with a strict model API that is told what to reply."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.kit.proxy_fuzz import strict_proxy
from tests.kit.strict_upstreams import Reply, StrictUpstreams, ToolCall, scripted
from tests.kit.strict_upstreams.clients import Call, ChatClient, Client, MessagesClient, ResponsesClient, ToolDef
from tests.kit.strict_upstreams.core import Wire
from toolsearch.catalog.catalog import Catalog
from toolsearch.proxy.app import ProxiedRequest
from toolsearch.wire.capabilities import Cloud

KINDS: dict[str, type[Client]] = {"messages": MessagesClient, "responses": ResponsesClient, "chat": ChatClient}
OLD = {"messages": "claude-sonnet-4-5", "responses": "gpt-4o", "chat": "gpt-4.1"}
NEW = {"messages": "claude-opus-5-5", "responses": "gpt-5.6"}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    ToolDef("Read", "Reads a file.", TEXT),
    ToolDef("mail__send_mail", "Send an e-mail to somebody.", TEXT),
    *(
        ToolDef(f"shop__thing_{number:03}", f"Does the thing number {number} in the shop.", TEXT)
        for number in range(20)
    ),
]


def search(name: str = "mail__send_mail") -> ToolCall:
    return ToolCall("toolSearchTool", {"queries": [f"select:{name}"]})


def run(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("callTool", {"name": name, "arguments": arguments})


@dataclass
class Talk:
    """A conversation of a strict client through the proxy, with a strict model API that gives *replies*."""

    api: Wire
    replies: list[Reply]
    cloud: Cloud = "other"
    model: str = ""
    stream: bool = False
    tools: Catalog | None = None
    problems: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)
    done: list[ProxiedRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fake = StrictUpstreams(scripted(list(self.replies)))
        self.client = KINDS[self.api](self.model or OLD[self.api], TOOLS, random.Random(1))  # noqa: S311
        if self.api == "chat" and self.client.model.startswith("gpt-5.6"):
            self.client.extra["reasoning_effort"] = "none"
        self.proxy = strict_proxy(self.fake, self.cloud, self.tools, self.done.append)

    async def ask(self, said: str = "Please do something", **more: Any) -> None:
        """Say something, unless the client has to answer calls first."""
        if self.calls:
            self.client.answer(self.calls)
        else:
            self.client.history.append({"role": "user", "content": said})
        await self.send({**self.client.body(), **({"stream": True} if self.stream else {}), **more})

    async def send(self, body: dict[str, Any]) -> None:
        headers = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01"}
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(self.proxy), base_url="http://proxy.test", headers=headers
        ) as http:
            answer = await http.post(self.client.path, json=body)
        outcome = self.client.read(answer.text, body)
        self.problems += [*outcome.problems, *([json.dumps(outcome.error)] if outcome.error else [])]
        self.last = outcome.reply or {}
        _, self.calls = self.client.take(self.last, self.problems, body)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.fake.requests]

    def entries(self, number: int) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.bodies[number]["input" if self.api == "responses" else "messages"]
        return entries

    @property
    def is_well(self) -> bool:
        return not (self.problems or self.fake.refusals)
