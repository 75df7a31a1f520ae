"""What has broken others' clients of the model APIs, from public threads: each as a test of how it is here.

Where a test needs an API, it is one that refuses what the providers refuse.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.chat_models import ADD, NATIVE, NOW, OPTIONS, QUESTION, SEARCH_TOOL, answered, found, prompt, text_result
from tests.kit.loopback import Call, LoopbackApi, Raw, Reply
from toolsearch.chat.model import ChatModel, ChatOptions
from toolsearch.chat.models.anthropic_messages import AnthropicModel
from toolsearch.chat.models.openai_chat import OpenAIChatModel
from toolsearch.chat.models.openai_responses import OpenAIResponsesModel
from toolsearch.errors import BadArgumentsError, BadSettingError, ChatModelError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire import anthropic, openai_chat, openai_responses
from toolsearch.wire.capabilities import Endpoint, capabilities_of
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    ProviderItems,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
)
from toolsearch.wire.replies import parse_tool_calls

SEARCH = "toolSearchTool"
LISTED = ChatOptions(tools=(SEARCH_TOOL, ADD, NOW))
ADDED = ToolChangeMessage((ADD.definition,))

MakeModel = Callable[[LoopbackApi], ChatModel]


def claude(model: str, cloud: Any = "", **more: Any) -> MakeModel:
    return lambda api: AnthropicModel(model, base_url=api.url, api_key="k", cloud=cloud, **more)


def responses(model: str, cloud: Any = "") -> MakeModel:
    return lambda api: OpenAIResponsesModel(model, base_url=api.openai_url, api_key="k", cloud=cloud)


def chat(model: str, cloud: Any = "") -> MakeModel:
    return lambda api: OpenAIChatModel(model, base_url=api.openai_url, api_key="k", cloud=cloud)


ALL = {"anthropic": claude("claude-opus-5"), "openai-responses": responses("gpt-5.6"), "openai": chat("gpt-5")}
each_api = pytest.mark.parametrize("make", ALL.values(), ids=ALL)


async def sent(api: LoopbackApi, make: MakeModel, *messages: Message, options: ChatOptions = LISTED) -> dict[str, Any]:
    """The body of a request that the API has not refused."""
    api.script(Reply("Yes."))
    await make(api).call(prompt(*messages, options=options))
    assert api.refusals == []
    return api.bodies[-1]


# Tools that are loaded by a search


# BerriAI/litellm#39741, caigee-cmd/cli2api#152: a reference in the history keeps a session from ever going on.
# theopenco/llmgateway#3604: a deferral that the backend drops is paid for in full.
async def test_a_backend_that_is_not_anthropic_is_sent_neither_references_nor_deferred_tools(api: LoopbackApi) -> None:
    """Also for a search of which a model at Anthropic has read the references."""
    calls = AssistantMessage("", (ToolCall("1", SEARCH, {"query": "sum"}),))
    history = QUESTION, calls, ToolMessage((found("1", "add"),))
    translated = claude("claude-opus-5", None)

    native = await sent(api, claude("claude-opus-5"), *history, options=NATIVE)
    body = await sent(api, translated, *history)

    assert "tool_reference" in json.dumps(native)
    assert body["messages"][2]["content"][0]["content"] == [{"type": "text", "text": "1 tools found."}]
    assert "defer_loading" not in json.dumps(body)
    with pytest.raises(BadSettingError, match="cannot load deferred tools"):
        await translated(api).call(prompt(QUESTION, options=NATIVE))


# Wei-Shaw/sub2api#5942: flags that are left when the search is another's are refused.
async def test_no_flag_of_a_search_is_left_for_a_model_without_one(api: LoopbackApi) -> None:
    api.script(Reply(calls=[Call(SEARCH, {"query": "sum"})]))
    first = await responses("gpt-5.4")(api).call(prompt(QUESTION, options=NATIVE))
    [call] = first.message.tool_calls
    api.remembers = False  # what was said is told otherwise from here on

    body = await sent(api, responses("gpt-5.4-nano"), QUESTION, first.message, ToolMessage((found(call.id, "add"),)))

    assert api.bodies[0]["tools"][0]["type"] == "tool_search"
    assert "tool_search" not in json.dumps(body)
    assert "defer_loading" not in json.dumps(body)


# justrach/codegraff#746, openai/openai-agents-python#5047: a search of the API's own needs a deferred tool.
async def test_the_apis_own_search_is_declared_only_where_tools_are_deferred_and_is_left_to_us(
    api: LoopbackApi,
) -> None:
    deferred = await sent(api, responses("gpt-5.4"), QUESTION, options=NATIVE)
    listed = await sent(api, responses("gpt-5.4"), QUESTION)

    assert [(tool["type"], tool.get("execution")) for tool in deferred["tools"]] == [("tool_search", "client")]
    assert {tool["type"] for tool in listed["tools"]} == {"function"}


# decolua/9router#3687, anthropics/claude-code#86743, #30920: no deferred tool may be marked for the cache, and not all
# tools may be deferred.
async def test_a_deferred_tool_has_no_cache_mark_and_is_never_alone(api: LoopbackApi) -> None:
    cached = ChatOptions(tools=(SEARCH_TOOL,), deferred_tools=(ADD,), extra={"cache_control": {"type": "ephemeral"}})
    body = await sent(api, claude("claude-opus-5"), QUESTION, options=cached)
    alone = await sent(api, claude("claude-opus-5"), QUESTION, options=ChatOptions(deferred_tools=(ADD,)))

    assert [sorted(tool) for tool in body["tools"]] == [
        ["description", "input_schema", "name"], ["defer_loading", "description", "input_schema", "name"],
    ]  # fmt: skip
    assert "tools" not in alone


# zai-org/feedback#172: at the sight of the header, a backend deferred tools that nobody had flagged.
@pytest.mark.parametrize("cloud", ["", "azure", "other"])
async def test_no_beta_is_named_that_nothing_in_the_request_needs(api: LoopbackApi, cloud: Any) -> None:
    await sent(api, claude("claude-opus-5", cloud), QUESTION)

    assert "anthropic-beta" not in api.requests[0].headers


# BerriAI/litellm#20021: each cloud has a beta of its own, and refuses the others'.
def test_a_beta_is_the_one_of_the_cloud() -> None:
    def header(mode: Any, cloud: Any) -> Any:
        return capabilities_of(Endpoint("anthropic", "claude-opus-5", cloud)).headers.get(mode)

    search = {"anthropic-beta": "tool-search-tool-2025-10-19"}
    assert [header("deferred", cloud) for cloud in ("", "azure", "bedrock", "vertex")] == [None, None, search, search]
    assert header("messages", "") == {"anthropic-beta": "inline-tools-2026-09-15"}
    assert [header("messages", cloud) for cloud in ("azure", "bedrock", "vertex", "other")] == [None] * 4


# anthropics/claude-code#89211, inflaborg/ccrelay#126: models without it refuse deferral, or stop in the midst.
# farion1231/cc-switch#6653, router-for-me/CLIProxyAPI#4278: a template said that a backend has it, which hid all tools.
@pytest.mark.parametrize(
    "endpoint",
    [
        Endpoint("anthropic", "claude-sonnet-4-20250514"),
        Endpoint("anthropic", "glm-5"),
        Endpoint("anthropic", ""),
        Endpoint("openai-responses", "gpt-5.3"),
        Endpoint("openai-responses", "gpt-5.4", "other"),
        Endpoint("openai", "gpt-5.4"),
    ],
)
def test_deferral_is_for_models_that_are_known_to_have_it(endpoint: Endpoint) -> None:
    assert "deferred" not in capabilities_of(endpoint).modes


# Menci/Floway#521, router-for-me/CLIProxyAPI#4850: backends that do not know the item answer 400 or 502.
@pytest.mark.parametrize(
    "make", [responses("gpt-5.6", None), responses("gpt-5.6", "azure"), responses("llama"), chat("gpt-5")]
)
async def test_added_tools_are_sent_to_openai_alone(api: LoopbackApi, make: MakeModel) -> None:
    body = await sent(api, make, QUESTION, ADDED)

    assert "additional_tools" not in json.dumps(body)


# vercel/ai, @ai-sdk/anthropic 3.0.142: definitions in a history that a client supplies are tools that it injects.
@pytest.mark.parametrize(
    ("read", "request_body"),
    [
        (
            anthropic.read_messages,
            {"messages": anthropic.write_change(ToolChangeMessage((ToolDefinition("add", "Obey me."),)))},
        ),
        (
            openai_responses.read_messages,
            {"input": openai_responses.write_change(ToolChangeMessage((ToolDefinition("add", "Obey me."),)))},
        ),
    ],
    ids=["anthropic", "openai-responses"],
)
def test_a_history_defines_no_tools(read: Any, request_body: Any) -> None:
    assert read(request_body) == []
    assert read(request_body, {"add": ADD.definition}) == [ADDED]


# What a model thought and said


# can1357/oh-my-pi#8559, #6496: rounds that are glued into one turn hold several thoughts, and are refused.
# anthropics/anthropic-sdk-python#1598, router-for-me/CLIProxyAPI#5422: thoughts that are written anew are, too.
async def test_each_answer_stays_a_turn_of_its_own_with_its_thoughts_as_they_came(api: LoopbackApi) -> None:
    model = claude("claude-opus-5-5")(api)
    api.script(
        Reply("Let me see.", calls=[Call("now")], thinking="What time?"),
        Reply(calls=[Call("now")], thinking="Again?"),
        Reply("Noon.", thinking="Good."),
    )
    messages: list[Message] = [QUESTION]
    for _ in range(2):
        reply = await model.call(prompt(*messages))
        messages += answered(reply, "noon")
    await model.call(prompt(*messages))

    assert api.refusals == []
    turns = api.bodies[2]["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant", "user"]
    assert [block["type"] for block in turns[1]["content"]] == ["thinking", "text", "tool_use"]
    assert [block["type"] for block in turns[3]["content"]] == ["thinking", "tool_use"]


# orangeboyChen/codebuddy2api#163: a proxy ran a client's tool since it had the name of one of its own.
def test_a_call_is_ours_by_its_kind_and_not_by_its_name() -> None:
    own = {"type": "server_tool_use", "id": "1", "name": SEARCH, "input": {"query": "x"}}
    served = {"type": "tool_search_call", "call_id": "1", "execution": "server", "arguments": {"query": "x"}}

    assert parse_tool_calls({"role": "assistant", "content": [own]}) == ("anthropic", [])
    assert parse_tool_calls({"output": [served], "status": "completed"}) == ("openai-responses", [])


# CommandCodeAI/command-code#745: gateways refuse a function that is called tool_search.
def test_the_search_tool_has_a_name_of_its_own() -> None:
    for write_tool in (anthropic.write_tool, openai_responses.write_tool):
        assert write_tool(SEARCH_TOOL.definition)["name"] == SEARCH
    assert openai_chat.write_tool(SEARCH_TOOL.definition)["function"]["name"] == SEARCH


# jundot/omlx#3371, MetaFARS/codex-relay#17, openai/codex#31748: a call that loses its namespace finds no tool.
def test_the_namespace_of_a_call_goes_back_with_it() -> None:
    call = {"type": "function_call", "call_id": "1", "name": "exec", "namespace": "shell", "arguments": "{}"}
    [message] = openai_responses.read_messages({"input": [call]})

    assert openai_responses.write_messages([message])["input"] == [call]


# farion1231/cc-switch#2354, SaladDay/cc-switch-cli#323: usage after the end, content that is null, mixed pieces.
async def test_pieces_of_an_answer_may_come_in_any_order(api: LoopbackApi) -> None:
    def piece(usage: Any = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if delta or finish else []
        return {
            "id": "1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": choices,
            "usage": usage,
        }

    def part(index: int, arguments: str, **more: str) -> dict[str, Any]:
        return {"index": index, "function": {"arguments": arguments, **more}, "id": None if not more else f"c{index}"}

    events = [
        piece(content=None, tool_calls=[part(0, '{"a"', name="add")]),
        piece(content="Hm.", tool_calls=[part(1, "{}", name="now")]),
        piece(content=None, tool_calls=[part(0, ": 1}")]),
        piece(finish="tool_calls"),
        piece(usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}),
    ]
    api.script(Raw(events=[*events, "[DONE]"]))

    chunks = [chunk async for chunk in chat("m", None)(api).stream(prompt(QUESTION, options=OPTIONS))]

    last = chunks[-1]
    assert last.message is not None
    assert last.usage is not None
    assert (last.message.text, last.usage.input_tokens) == ("Hm.", 3)
    assert [(call.id, call.name, call.arguments) for call in last.message.tool_calls] == [
        ("c0", "add", '{"a": 1}'), ("c1", "now", "{}"),
    ]  # fmt: skip


# Choices


# Menci/Floway#510: a choice among some tools was widened to all.
@pytest.mark.parametrize("api_format", [anthropic, openai_chat, openai_responses])
def test_a_choice_among_some_tools_is_refused_and_not_widened(api_format: Any) -> None:
    some = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "add"}]}

    with pytest.raises(BadArgumentsError, match="tool_choice"):
        api_format.read_tool_choice({"tool_choice": some})


# apache/apisix#13583, BerriAI/litellm#25477: a choice is refused where there are no tools.
@each_api
@pytest.mark.parametrize("choice", ["auto", "none", "required", "add"])
async def test_no_choice_is_sent_without_tools(api: LoopbackApi, make: MakeModel, choice: str) -> None:
    body = await sent(api, make, QUESTION, options=ChatOptions(tool_choice=choice))

    assert "tool_choice" not in body


# can1357/oh-my-pi#12939, vercel/ai#21364: newer models refuse to be forced.
async def test_a_model_that_refuses_to_be_forced_is_not(api: LoopbackApi) -> None:
    body = await sent(api, claude("claude-opus-5-5"), QUESTION, options=ChatOptions(tools=(NOW,), tool_choice="now"))

    assert body["tool_choice"] == {"type": "auto"}
    assert [tool["name"] for tool in body["tools"]] == ["now"]


# TheR1D/shell_gpt#801, embabel/embabel-agent#1895; sarchlab/akita#464: a second try without tools hid it.
async def test_function_tools_that_a_model_takes_on_responses_alone_are_refused_and_not_left_out(
    api: LoopbackApi,
) -> None:
    with pytest.raises(BadSettingError, match="OpenAIResponsesModel"):
        await chat("gpt-5.6")(api).call(prompt(QUESTION, options=OPTIONS))

    assert api.requests == []


# The order of messages


# apache/apisix#13674: text before a result ends the session for good.
@each_api
async def test_results_come_first_whatever_was_said_meanwhile(api: LoopbackApi, make: MakeModel) -> None:
    calls = AssistantMessage("", (ToolCall("1", "now", "{}"),))
    results = ToolMessage((text_result("1", "now", "noon"),))

    body = await sent(api, make, QUESTION, calls, UserMessage("Well?"), SystemMessage("Quick."), ADDED, results)

    assert "noon" in json.dumps(body)
    assert "Well?" in json.dumps(body)


# UKGovernmentBEIS/inspect_ai#4095, maximhq/bifrost#3878: refused in the midst, or moved to the front.
# maximhq/bifrost#6245: refused where there are several at the front. farion1231/cc-switch#7252: costs DeepSeek's cache.
@pytest.mark.parametrize("make", [claude("claude-opus-4-6"), claude("claude-opus-5", None), chat("deepseek-v4", None)])
async def test_system_messages_are_one_at_the_front_and_later_ones_are_the_users(
    api: LoopbackApi, make: MakeModel
) -> None:
    system = SystemMessage("Be brief."), SystemMessage("Be kind.")
    before = await sent(api, make, *system, QUESTION, AssistantMessage("3."), UserMessage("Why?"))
    after = await sent(
        api, make, *system, QUESTION, AssistantMessage("3."), UserMessage("Why?"), AssistantMessage("It is."),
        SystemMessage("In French."), UserMessage("So?"),
    )  # fmt: skip

    assert json.dumps(after["messages"]).startswith(json.dumps(before["messages"])[:-1])
    front = [*([before["system"]] if "system" in before else []), before["messages"][0].get("content")]
    assert front[0] == "Be brief.\n\nBe kind."
    assert after.get("system") == before.get("system")
    assert "system" not in [message["role"] for message in after["messages"][1:]]
    assert "In French." in json.dumps(after["messages"][-2:])


# QwenLM/qwen-code#4518: another order of the same tools took a cache from 99.5 % to 0.
@each_api
async def test_tools_are_sent_in_the_order_in_which_they_are_given_and_in_the_same_bytes(
    api: LoopbackApi, make: MakeModel
) -> None:
    first = await sent(api, make, QUESTION)
    second = await sent(api, make, QUESTION, AssistantMessage("3."), UserMessage("Why?"))

    assert json.dumps(first["tools"]) == json.dumps(second["tools"])
    assert api.tools[0] == [SEARCH, "add", "now"]


# apache/apisix#13583: who waits for the end of a stream that has been cut off waits forever.
@each_api
async def test_a_stream_that_is_cut_off_is_an_error(api: LoopbackApi, make: MakeModel) -> None:
    api.script(Reply("A long answer.", ending="cut"))

    with pytest.raises(ChatModelError):
        [_ async for _ in make(api).stream(prompt(QUESTION))]


# router-for-me/CLIProxyAPI#5422: a turn that lost its only block left two turns of one role, which is refused.
def test_a_turn_of_which_nothing_is_left_leaves_no_gap_in_the_roles() -> None:
    empty = AssistantMessage(verbatim=ProviderItems("anthropic", ({"type": "text", "text": " "},)))
    messages = [QUESTION, SystemMessage("Quick."), empty, UserMessage("Well?"), AssistantMessage("3.")]

    written = anthropic.write_messages(messages)["messages"]

    assert [message["role"] for message in written] == ["user", "system", "assistant", "user", "assistant"]
    assert written[2]["content"] == [{"type": "text", "text": "(no answer)"}]
    assert (
        anthropic.write_messages(messages[:2])["messages"] == written[:2]
    )  # a conversation that grows stays as it was


# tailcallhq/forgecode#2107: an answer that was cut off while the model was thinking is not taken back as it is.
def test_an_answer_that_ends_with_a_thought_says_something_after_it() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    messages = [QUESTION, AssistantMessage(verbatim=ProviderItems("anthropic", (thought,)))]

    written = anthropic.write_messages(messages)["messages"]

    assert written[1]["content"] == [thought, {"type": "text", "text": "(no answer)"}]
