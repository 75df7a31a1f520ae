"""Two principals of one gateway: nothing that either is answered depends on what only the other may see."""

import asyncio
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import MCPError

from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.errors import ToolSearchError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.trust.verdicts import ReviewItem, ReviewReason, Verdict
from toolsearch.tools.definition import EntryKind, Tool, ToolDefinition, ToolOrigin
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import namespaced
from toolsearch.upstreams.interface import (
    Listing,
    UpstreamRequest,
    UpstreamSinks,
    UpstreamState,
    UpstreamStatus,
)
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.wire.mcp.eras import Era

SERVERS = ("alpha", "beta", "gamma")
LOCAL_NAMES = ("read_file", "read_files", "write_file", "delete_file", "list_mail", "send_mail")
CLASSES: tuple[dict[str, bool] | None, ...] = (
    None,
    {"readOnlyHint": True},
    {"readOnlyHint": False, "destructiveHint": True},
)
RULES = (
    *(f"server:{server}" for server in SERVERS),
    "class:read",
    "class:destructive",
    "*__read_*",
    "*mail",
    *(f"{server}__{name}" for server in SERVERS for name in LOCAL_NAMES[:3]),
)


@dataclass(frozen=True)
class Spec:
    """One tool, of which every text holds a mark that nothing else has."""

    server: str
    local: str
    annotations: dict[str, bool] | None

    @property
    def name(self) -> str:
        return namespaced(self.server, self.local)

    @property
    def mark(self) -> str:
        return f"mark{SERVERS.index(self.server)}{LOCAL_NAMES.index(self.local)}x"

    def listed(self) -> Tool:
        verb, noun = self.local.split("_")
        text = f"{verb.capitalize()} a {noun}, says {self.mark}."
        schema = {
            "type": "object",
            "properties": {
                f"in_{self.mark}": {"type": "string", "description": self.mark, "x-mcp-header": self.mark},
            },
            "required": [f"in_{self.mark}"],
        }
        raw: dict[str, Any] = {"name": self.local, "description": text, "inputSchema": schema}
        if self.annotations is not None:
            raw["annotations"] = self.annotations
        definition = ToolDefinition(
            self.name, server=self.server, description=text, input_schema=schema, annotations=self.annotations or {}
        )
        return Tool(definition, origin=ToolOrigin(self.server, self.local, raw))


@dataclass(frozen=True)
class World:
    """What there is, who may see what of it, and who does what in which order."""

    tools: tuple[Spec, ...]
    held: frozenset[str]
    down: frozenset[str]
    rules: tuple[tuple[str, ...], tuple[str, ...]]
    reaches: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    steps: tuple[tuple[str, bool, tuple[Any, ...]], ...]  # who, whether in a session that grows, what

    def visible(self, who: str) -> tuple[Spec, ...]:
        """What *who* may find and call."""
        return tuple(tool for tool in self.known(who) if tool.name not in self.held)

    def known(self, who: str) -> tuple[Spec, ...]:
        """What *who* may know of: of tools that wait for approval, that they do."""
        rules, reach = Reach.parse(*self.rules), Reach.parse(*self.reaches[who])
        return tuple(
            tool
            for tool in self.tools
            if tool.server not in self.down
            and rules.allows(tool.listed().definition)
            and reach.allows(tool.listed().definition)
        )


def rules() -> st.SearchStrategy[tuple[tuple[str, ...], tuple[str, ...]]]:
    some = st.lists(st.sampled_from(RULES), max_size=3, unique=True).map(tuple)
    return st.tuples(st.just(("*",)) | some, some)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    pairs = st.tuples(st.sampled_from(SERVERS), st.sampled_from(LOCAL_NAMES))
    tools = tuple(
        Spec(server, local, draw(st.sampled_from(CLASSES)))
        for server, local in draw(st.lists(pairs, min_size=3, max_size=14, unique=True))
    )
    names = st.sampled_from([tool.name for tool in tools])
    near = st.one_of(names, names.map(lambda name: name[:-1]), names.map(lambda name: f"{name}s"), st.just("nope"))
    marks = st.sampled_from([tool.mark for tool in tools])
    arguments = st.one_of(st.just({}), marks.map(lambda mark: {f"in_{mark}": "v"}), st.just({"x": 1}))
    words = st.sampled_from(["read a file", "mail", "delete", "write file", "folder weather"])
    query = st.one_of(
        words, marks, near, near.map("select:{}".format), st.tuples(names, near).map("select:{0[0]},{0[1]}".format),
        st.sampled_from(["/mark/", "/__/", "/beta/", "/^gamma__/", "/(/"]),
    )  # fmt: skip
    asked = st.fixed_dictionaries(
        {"query": query},
        optional={
            "strategy": st.sampled_from(["keyword", "regex", "hybrid"]),
            "server": st.sampled_from([*SERVERS, "delta"]),
            "limit": st.integers(1, 10),
        },
    )
    callers = st.sampled_from(["callToolRead", "callToolWrite", "callToolDestructive"])
    step = st.one_of(
        st.just(("list",)),
        st.tuples(st.just("search"), asked),
        st.tuples(st.just("call"), near, arguments),
        st.tuples(st.just("callTool"), callers, near, arguments),
        st.tuples(st.just("schema"), near),
        st.just(("content",)),
        st.tuples(st.just("prompt"), st.sampled_from(SERVERS)),
        st.tuples(st.just("resource"), st.sampled_from(SERVERS)),
    )
    return World(
        tools,
        frozenset(draw(st.lists(names, max_size=2))),
        frozenset(draw(st.lists(st.sampled_from(SERVERS), max_size=1))),
        draw(st.one_of(st.just((("*",), ())), rules())),
        {"ann": draw(rules()), "bob": draw(rules())},
        tuple(draw(st.lists(st.tuples(st.sampled_from(["ann", "bob"]), st.booleans(), step), min_size=4, max_size=12))),
    )


@dataclass
class FakeUpstream:
    """Lists what it is told to, answers every call, and notes it."""

    treated: UpstreamSettings
    sinks: UpstreamSinks
    specs: tuple[Spec, ...]
    is_down: bool
    called: list[tuple[str, str]] = field(default_factory=list)
    is_modern = False
    owner = ""

    @property
    def name(self) -> str:
        return self.treated.name

    @property
    def state(self) -> UpstreamState:
        return UpstreamState.DOWN if self.is_down else UpstreamState.READY

    def status(self) -> UpstreamStatus:
        return UpstreamStatus(self.name, "stdio", self.state)

    def start(self) -> None:
        self.sinks.state(self.name, self.state)

    def of(self, grant: Grant) -> Self:  # noqa: ARG002
        return self

    def wake(self) -> None: ...

    async def relist(self) -> None:
        await self.sinks.listing(
            Listing(
                self.name,
                tuple(spec.listed() for spec in self.specs),
                prompts=({"name": f"prompt_{self.name}"},),
                resources=({"uri": f"file:///{self.name}", "name": self.name},),
                resource_templates=({"uriTemplate": f"{self.name}://{{x}}", "name": self.name},),
            )
        )

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        self.called.append((request.method, str(request.params.get("name", request.params.get("uri")))))
        return {"content": [{"type": "text", "text": f"done by {self.name}"}]}

    async def aclose(self) -> None: ...


@dataclass(frozen=True)
class HoldingGate:
    """Holds the tools of these names."""

    names: frozenset[str]

    def version(self) -> int:
        return 0

    def judge(self, server: str, tools: Any, **_: Any) -> Verdict:  # noqa: ARG002
        return Verdict(
            tuple(tool for tool in tools if tool.name not in self.names),
            tuple(ReviewItem.of(tool, ReviewReason.NEW) for tool in tools if tool.name in self.names),
        )


class Client:
    """A client that nobody can ask anything."""

    session_key = "s"
    log_level = None
    capabilities: Mapping[str, Any] = {}

    async def progress(self, *_: Any) -> None: ...
    async def tell(self, *_: Any) -> None: ...


async def run(world: World, tools: tuple[Spec, ...], servers: frozenset[str], only: str | None, folder: str) -> Any:
    """What each step is answered, by its number, and the gateway's calls: of everybody, or of *only* one."""
    document = {
        "mcpServers": {server: {"command": server} for server in SERVERS if server in servers},
        "toolsearch": {
            "stateDir": folder,
            "strategy": "keyword",
            "rules": {"allow": world.rules[0], "deny": world.rules[1]},
            "passThrough": {"maxTools": 0},
            "exposure": {"pins": ["alpha__read_file", "beta__send_mail"]},
        },
    }
    fakes: dict[str, FakeUpstream] = {}

    def upstream(treated: UpstreamSettings, sinks: UpstreamSinks) -> FakeUpstream:
        name = treated.name
        own = tuple(tool for tool in tools if tool.server == name)
        return fakes.setdefault(name, FakeUpstream(treated, sinks, own, name in world.down))

    gateway = Gateway(read_gateway_config(document, {}), upstreams=upstream, gate=HoldingGate(world.held))
    principals = {who: Principal(who, Reach.parse(*rules)) for who, rules in world.reaches.items()}
    answers: dict[int, Any] = {}
    async with gateway:
        for fake in fakes.values():
            if not fake.is_down:
                await fake.relist()
        for number, (who, grows, step) in enumerate(world.steps):
            if only is None or (who == only and not grows):
                caller = (
                    Caller(Grant(principals[who]), Era.LEGACY, session_key=f"{who}-session", client_name="claude-code")
                    if grows
                    else Caller(Grant(principals[who]), Era.MODERN, client_name="anything")
                )
                answers[number] = await answer(gateway, caller, step)
    return answers, {name: fake.called for name, fake in fakes.items()}


async def answer(gateway: Gateway, caller: Caller, step: tuple[Any, ...]) -> Any:
    """The result, or the error, as it would go over the wire."""
    kind, *rest = step
    try:
        if kind == "list":
            return await gateway.list_tools(caller)
        if kind == "search":
            found = await gateway.search(caller, rest[0])
            return [found.text, found.structured]
        if kind == "schema":
            return gateway.surface.input_schema(rest[0], caller.principal.reach)
        if kind == "content":
            content = gateway.content
            return [content.prompts(caller), content.resources(caller), content.resource_templates(caller)]
        if kind == "prompt":
            return await gateway.content.get_prompt(caller, {"name": f"{rest[0]}__prompt_{rest[0]}"}, Client())
        if kind == "resource":
            return await gateway.content.read(caller, {"uri": f"{rest[0]}://1"}, Client())
        name, arguments = rest if kind == "call" else (rest[0], {"name": rest[1], "arguments": rest[2]})
        return await gateway.call(caller, {"name": name, "arguments": arguments}, Client())
    except MCPError as error:
        return ["MCPError", error.code, error.message, error.data]
    except ToolSearchError as error:
        return [error.code, str(error)]


def echoed(step: tuple[Any, ...]) -> str:
    """What the caller said itself, which it may be told again."""
    return json.dumps(step)


@settings(deadline=None, max_examples=60)
@given(worlds())
def test_no_answer_crosses_between_principals(world: World) -> None:
    """Nothing out of reach is named, marked or called, and of what waits for approval nothing is told but that it does,
    to who names it. Where nothing is ranked, each answer is what it would be in a world without all that is out of the
    caller's reach, and without the other caller.
    """
    with tempfile.TemporaryDirectory() as folder:
        both, called = asyncio.run(run(world, world.tools, frozenset(SERVERS), None, folder))
        for who in world.reaches:
            seen = {tool.name for tool in world.visible(who)}
            for number, (asker, _, step) in enumerate(world.steps):
                if asker == who:
                    _names_nothing_else(world, seen, echoed(step), json.dumps(both[number]))
            alone, _ = asyncio.run(run(world, world.known(who), frozenset(SERVERS), who, str(Path(folder) / who)))
            for number, answered in alone.items():
                step = world.steps[number][2]
                if step[0] in {"list", "call", "callTool", "schema"} or _is_select(step):
                    assert both[number] == answered, step
    everybodys = {tool.name for who in world.reaches for tool in world.visible(who)}
    for server, requests in called.items():
        for method, name in requests:
            assert method != "tools/call" or namespaced(server, name) in everybodys


def _names_nothing_else(world: World, seen: set[str], said: str, answered: str) -> None:
    for tool in world.tools:
        if tool.name in seen:
            continue
        assert tool.mark not in answered or tool.mark in said
        if tool.name not in said:
            assert re.search(rf"(?<![\w-]){tool.name}(?![\w-])", answered) is None, tool.name


def _is_select(step: tuple[Any, ...]) -> bool:
    return step[0] == "search" and step[1]["query"].startswith("select:")


TWO = tuple(Spec("alpha", name, None) for name in ("read_file", "send_mail"))
ASKED = "alpha__read_file"
WAYS: tuple[tuple[Any, ...], ...] = (
    ("call", ASKED, {}),
    ("callTool", "callToolDestructive", ASKED, {}),
    ("callTool", "callToolRead", ASKED, {}),
    *(("search", {"query": query}) for query in (ASKED, f"select:{ASKED}", f"select:mcp__{ASKED},nope", f"/{ASKED}/")),
    ("search", {"query": "read a file"}),
    ("list",),
)


def _told(held: frozenset[str], deny: tuple[str, ...], rules: tuple[str, ...] = ()) -> list[Any]:
    """What each of WAYS is answered, of two tools of which *held* wait, to one whom *deny* keeps from some."""
    steps = tuple(("ann", grows, step) for grows in (False, True) for step in WAYS)
    world = World(TWO, held, frozenset(), (("*",), rules), {"ann": (("*",), deny)}, steps)
    with tempfile.TemporaryDirectory() as folder:
        answers, called = asyncio.run(run(world, TWO, frozenset(SERVERS), None, folder))
    assert called["alpha"] == []
    return list(answers.values())


def test_who_may_know_of_a_tool_that_waits_for_approval_is_told_that_it_waits_by_every_way_that_names_it() -> None:
    how = f"with `toolsearch gateway approve {ASKED}`"
    says = f"{ASKED} waits for a person to approve its definition {how}; until then it can be neither found nor called"
    answers = _told(frozenset({ASKED}), ())
    for each in (answers[: len(WAYS)], answers[len(WAYS) :]):
        by_name, by_call_tool, by_lesser, *searches, listed = each
        assert by_name == ["MCPError", -32602, says, None]  # where it is not listed, as if it were not there
        assert by_call_tool == by_lesser
        assert by_call_tool["content"] == [{"type": "text", "text": says}]
        assert (by_call_tool["isError"], by_call_tool["_meta"]) == (True, {"toolsearch/error": "unapproved_tool"})
        assert [f"{says}." in text.splitlines() for text, _ in searches] == [True, True, True, False, False]
        assert [f"{says}." in str(structured.get("note")) for _, structured in searches[:3]] == [True] * 3
        assert ASKED not in json.dumps([*searches[3:], listed])


def test_out_of_reach_a_tool_that_waits_for_approval_is_answered_like_one_that_does_not_exist() -> None:
    without = _told(frozenset(), (ASKED,))
    assert _told(frozenset({ASKED}), (ASKED,)) == without
    assert _told(frozenset({ASKED}), (), rules=(ASKED,)) == without
    assert "waits" not in json.dumps(without)


@settings(deadline=None, max_examples=60)
@given(worlds())
def test_a_server_of_which_nothing_is_in_reach_shows_no_prompt_or_resource(world: World) -> None:
    content = tuple((who, False, ("content",)) for who in world.reaches)
    asking = World(world.tools, world.held, world.down, world.rules, world.reaches, content)
    with tempfile.TemporaryDirectory() as folder:
        answers, _ = asyncio.run(run(asking, world.tools, frozenset(SERVERS), None, folder))
    listing = {tool.server for tool in world.tools}
    for number, (who, rules) in enumerate(world.reaches.items()):
        reach = Reach.parse(*world.rules) & Reach.parse(*rules)
        reached = {tool.server for tool in world.visible(who)}
        reached |= {server for server in listing if any(map(reach.allows, _contents_of(server)))}
        for server in listing - reached:
            assert server not in json.dumps(answers[number])


def _contents_of(server: str) -> list[ToolDefinition]:
    """The prompt, the resource and the template of a server, as rules see them."""
    named: list[tuple[str, EntryKind]] = [
        (f"prompt_{server}", "prompt"), (server, "resource"), (f"{server}_resource", "resource"),
    ]  # fmt: skip
    reads: JsonObject = {"readOnlyHint": True}
    return [ToolDefinition(f"{server}__{name}", server=server, annotations=reads, kind=kind) for name, kind in named]
