"""Random conversations through the proxy with the strict fake of the model APIs, all in this process."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import httpx
import httpx2
from starlette.types import Receive, Scope, Send

from tests.kit.strict_upstreams import RandomBrain, Reply, Search, StrictUpstreams, ToolCall, Turn, VisibleTool
from tests.kit.strict_upstreams.brain import Part, sample_value
from tests.kit.strict_upstreams.clients import ToolDef, make_tools
from tests.kit.strict_upstreams.core import Wire
from tests.kit.strict_upstreams.fuzz import Options, Report, fuzz_async
from toolsearch.catalog.catalog import Catalog
from toolsearch.proxy.app import ProxiedRequest, ProxyApp
from toolsearch.proxy.upstream import Upstream
from toolsearch.settings import Settings
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.wire.capabilities import Cloud

WIRES: tuple[Wire, ...] = ("messages", "responses", "chat")
KEYWORDS = Settings.model_validate({"index": {"encoder": None, "strategy": "keyword"}})
OPERATOR = [replace(tool, name=f"op_{tool.name}") for tool in make_tools(40, 1001)]

# The only thing that a client may find: the model made the calls that it was made to make, and all were the proxy's.
_FORCED_OWN_CALL = "no call under tool_choice required"


class Model(RandomBrain):
    """Also calls tools through the call tool, whether it has found them or not, and finds them by name."""

    def __init__(self, seed: int, tools: Sequence[ToolDef]) -> None:
        super().__init__(seed)
        self._tools = [*tools, *OPERATOR]

    def __call__(self, tools: list[VisibleTool], turns: list[Turn]) -> Reply:
        reply = super().__call__(tools, turns)
        return replace(reply, parts=list(map(self._searched, reply.parts)))

    def _searched(self, part: Part) -> Part:
        """Half of the API's own searches are for a tool by its name."""
        if not isinstance(part, Search):
            return part
        rng = random.Random(f"{self.seed}:{part.query}")  # noqa: S311
        return Search(f"select:{rng.choice(self._tools).name}") if rng.random() < 0.5 else part

    def _call(self, tool: VisibleTool, rng: random.Random, tools: list[VisibleTool]) -> ToolCall:
        call = super()._call(tool, rng, tools)
        wanted = rng.choice(self._tools)
        if tool.name == CALL_TOOL and "name" in call.arguments and rng.random() < 0.8:
            schema = {"type": "object", **wanted.parameters}
            return ToolCall(CALL_TOOL, {"name": wanted.name, "arguments": sample_value(schema, rng)})
        if tool.name == TOOL_NAME and not call.broken and rng.random() < 0.5:
            return ToolCall(TOOL_NAME, {"queries": [f"select:{wanted.name}"]})
        return call


@dataclass(frozen=True)
class Runs:
    """The callback of a tool: some fail, and some answer at length."""

    number: int
    return_type: None = None

    async def call(self, arguments: JsonObject, context: ToolContext) -> str:  # noqa: ARG002  a protocol's
        if self.number % 7 == 0:
            raise ValueError("fails")
        return f"ran {self.number} \u00fc " * (41 if self.number % 5 == 0 else 1)


def operators_tools() -> Catalog:
    return Catalog(
        [
            Tool(ToolDefinition(tool.name, tool.description, tool.parameters), Runs(number))
            for number, tool in enumerate(OPERATOR)
        ]
    )


@dataclass
class Fuzzed:
    """What came of it."""

    fake: StrictUpstreams
    report: Report

    @property
    def problems(self) -> list[str]:
        refused = [f"refused ({each.check}): {each.message}" for each in self.fake.refusals]
        found = [str(each) for each in self.report.problems if each.text != _FORCED_OWN_CALL]
        return [*refused, *found]


async def fuzzed(wire: Wire, conversations: int, seed: int, *, cloud: Cloud, stored: bool = False) -> Fuzzed:
    """Conversations with 60 tools of the client's and 40 of the operator's.

    Their requests meet two proxies by turns, which know nothing of each other. Conversations that the API has *stored*
    meet one, since only that can continue them.
    """
    tools = make_tools(60, seed)
    fake = StrictUpstreams(Model(seed, tools), seed=seed)
    proxies = [strict_proxy(fake, cloud, operators_tools()) for _ in range(1 if stored else 2)]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        proxies.append(proxies.pop(0))
        await proxies[0](scope, receive, send)

    # The proxy leaves tools that the client defers alone. It knows models that reason without functions only at the
    # provider's own address, so no client there may have brought none.
    options = Options(stored=float(stored), native=0, no_tools=0 if (wire, cloud) == ("chat", "other") else 0.05)
    report = await fuzz_async(
        "http://proxy.test",
        wire,
        conversations=conversations,
        seed=seed,
        tools=tools,
        options=options,
        transport=httpx.ASGITransport(app),
    )
    for proxy in proxies:
        await proxy.aclose()
    return Fuzzed(fake, report)


def strict_proxy(
    fake: StrictUpstreams, cloud: Cloud, tools: Catalog | None, note: Callable[[ProxiedRequest], None] | None = None
) -> ProxyApp:
    """A proxy in front of *fake*, without sockets."""
    upstream = Upstream("http://api.test", silence_s=60, transport=httpx2.ASGITransport(fake.app))
    return ProxyApp(upstream, KEYWORDS, tools, cloud, note=note)
