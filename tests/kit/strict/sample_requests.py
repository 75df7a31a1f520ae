"""What the judges are tried on: good requests from the providers' documents, and a bad one for each rule."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from . import anthropic_messages, mcp_tools, openai_chat, openai_responses
from .odd_tools import props

Json = dict[str, Any]
Judge = Callable[..., list[str]]

WEATHER = props({"location": {"type": "string", "description": "City name"}}, ["location"])
STRICT = props({"location": {"type": "string"}}, ["location"], additionalProperties=False)
NEWEST = "claude-opus-5"
BIG_SCHEMA = props({"value": {"type": "array"}})


def lasting(*keys: str, of: Mapping[str, Any]) -> Json:
    """The mapping less some keys."""
    return {key: value for key, value in of.items() if key not in keys}


# --- Anthropic -----------------------------------------------------------------------------------------------------


def claude_tool(name: str = "get_weather", **fields: Any) -> Json:
    """A custom tool."""
    return {"name": name, "description": "Get the weather.", "input_schema": WEATHER, **fields}


def claude(*messages: Json, **fields: Any) -> Json:
    """A request to the Messages API."""
    base: Json = {"model": NEWEST, "max_tokens": 1024, "messages": list(messages) or [user("Hello, Claude")]}
    return {**base, **fields}


def user(*content: Any) -> Json:
    """A user message of one text, or of blocks."""
    return {
        "role": "user",
        "content": content[0] if len(content) == 1 and isinstance(content[0], str) else list(content),
    }


def assistant(*content: Any) -> Json:
    """An assistant message."""
    return {**user(*content), "role": "assistant"}


def system(*content: Any, **fields: Any) -> Json:
    """A system message."""
    return {**user(*content), "role": "system", **fields}


def text(words: str = "x", **fields: Any) -> Json:
    """A text block."""
    return {"type": "text", "text": words, **fields}


def use(call_id: str = "toolu_1", name: str = "get_weather", **fields: Any) -> Json:
    """A tool call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"location": "Rome"}, **fields}


def result(call_id: str = "toolu_1", content: Any = "15 degrees", **fields: Any) -> Json:
    """A tool result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def reference(name: str = "get_weather") -> Json:
    """A reference to a tool, as a tool result holds it."""
    return {"type": "tool_reference", "tool_name": name}


def change(kind: str, name: str = "get_weather") -> Json:
    """A tool change by reference."""
    return {"type": kind, "tool": {"type": "tool_reference", "name": name}}


def server_use(call_id: str = "srvtoolu_1") -> Json:
    """A search that runs on the server."""
    return {"type": "server_tool_use", "id": call_id, "name": "tool_search_tool_regex", "input": {"pattern": "weather"}}


def server_result(name: str = "get_weather", call_id: str = "srvtoolu_1") -> Json:
    """What that search found."""
    found = {"type": "tool_search_tool_search_result", "tool_references": [reference(name)]}
    return {"type": "tool_search_tool_result", "tool_use_id": call_id, "content": found}


CACHE = {"type": "ephemeral"}
SEARCH = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
ROUND = (user("Weather?"), assistant(text("I look."), use()), user(result(), text("And now?")))
TOOLS = [claude_tool()]
LATER = [SEARCH, claude_tool(defer_loading=True)]

CLAUDE_GOOD: dict[str, Json] = {
    "plain (Messages API)": claude(),
    "turns": claude(user("Hi"), assistant("Hello."), user("Explain.")),
    "a whole round of a call (Handle tool calls)": claude(*ROUND, tools=TOOLS),
    "parallel calls": claude(
        user("Hi"), assistant(use("toolu_1"), use("toolu_2")), user(result("toolu_2"), result("toolu_1")), tools=TOOLS
    ),
    "tool search (Tool search tool)": claude(user("Weather?"), tools=LATER),
    "tool search carried on": claude(
        user("Weather?"), assistant(server_use(), server_result(), use()), user(result()), tools=LATER
    ),
    "own tool search": claude(
        user("Hi"),
        assistant(use(name="find")),
        user(result(content=[reference()])),
        tools=[claude_tool("find"), claude_tool(defer_loading=True)],
    ),
    "a tool withdrawn (Mid-conversation tool changes)": claude(
        user("Say OK."), system(change("tool_removal")), tools=TOOLS
    ),
    "a tool defined later": claude(
        user("Hi"),
        system({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": claude_tool("late")}}),
        assistant("Fine."),
        user("Go"),
        system(change("tool_removal", "late")),
        tools=TOOLS,
    ),
    "a turn-scoped system message": claude(user("Draft"), system("Short.", clear_at="next_user_message")),
    "effort only, first": claude({"role": "system", "content": [], "output_config": {"effort": "low"}}, user("Hi")),
    "system blocks with caching": claude(system=[text("Be terse.", cache_control=CACHE)], cache_control=CACHE),
    "manual thinking on an older model": claude(
        user("Hi"),
        assistant({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, use()),
        user(result()),
        model="claude-sonnet-4-5",
        max_tokens=4096,
        thinking={"type": "enabled", "budget_tokens": 2048},
        tools=TOOLS,
    ),
    "omitted thinking text": claude(
        user("Hi"), assistant({"type": "thinking", "thinking": "", "signature": "c2ln"}, text()), user("Go")
    ),
    "forced choice on Opus 5": claude(tools=TOOLS, tool_choice={"type": "tool", "name": "get_weather"}),
    "prefill on an older model": claude(user("Hi"), assistant("The answer is ("), model="claude-sonnet-4-5"),
    "strict tool (Strict tool use)": claude(tools=[claude_tool(strict=True, input_schema=STRICT)]),
    "schema with definitions": claude(
        tools=[
            claude_tool(input_schema=props({"t": {"$ref": "#/definitions/T"}}, definitions={"T": {"type": "string"}}))
        ]
    ),
    "examples": claude(tools=[claude_tool(input_examples=[{"location": "Rome"}])]),
    "server and client tools": claude(tools=[{"type": "web_search_20250305", "name": "web_search"}, *TOOLS]),
    "long cache before short": claude(
        tools=[claude_tool(cache_control={**CACHE, "ttl": "1h"})], system=[text(cache_control=CACHE)]
    ),
}


def with_schema(schema: Any, **fields: Any) -> Json:
    """A request whose one tool has this schema."""
    return claude(tools=[claude_tool(input_schema=schema, **fields)])


def strict_schema(**fields: Any) -> Json:
    """A request whose one strict tool has a property of this schema."""
    return with_schema(props({"a": fields}, ["a"], additionalProperties=False), strict=True)


RECURSIVE = props({"next": {"$ref": "#"}}, additionalProperties=False)
# Each case: a label, the request, words of the finding.
CLAUDE_BAD: list[tuple[str, Json, str]] = [
    ("no model", lasting("model", of=claude()), "model: missing"),
    ("no max_tokens", lasting("max_tokens", of=claude()), "max_tokens"),
    ("unknown field", claude(parallel_tool_calls=True), "parallel_tool_calls: this field"),
    ("NaN", claude(temperature=float("nan")), "not a JSON number"),
    ("half a surrogate pair", claude(user("\ud83d")), "surrogate"),
    ("a value that is no JSON", claude(metadata={"at": object()}), "not a JSON value"),
    ("a key that is no string", claude(metadata={1: "a"}), "is not a string"),
    ("tools no list", claude(tools={}), "tools: must be a list"),
    ("tool no object", claude(tools=["get_weather"]), "must be an object"),
    ("tool of unknown type", claude(tools=[{"type": "function", "name": "a"}]), "no known type"),
    ("tool without a name", claude(tools=[lasting("name", of=claude_tool())]), "name: missing"),
    ("name with dots", claude(tools=[claude_tool("a.b")]), "does not match"),
    ("name with a line end", claude(tools=[claude_tool("ab\n")]), "does not match"),
    ("name too long", claude(tools=[claude_tool("n" * 65)]), "does not match"),
    ("name twice", claude(tools=[claude_tool(), claude_tool()]), "given 2 times"),
    ("description null", claude(tools=[claude_tool(description=None)]), "description: must be a string"),
    ("field of another API", claude(tools=[claude_tool(parameters={})]), "parameters: this field"),
    ("no schema", claude(tools=[lasting("input_schema", of=claude_tool())]), "input_schema: missing"),
    ("schema no object", with_schema([]), "must be an object"),
    ("root of another type", with_schema({"type": "string"}), "must be 'object'"),
    ("root anyOf", with_schema({**WEATHER, "anyOf": []}), "not taken at the root"),
    ("root oneOf", with_schema({**WEATHER, "oneOf": [{}]}), "not taken at the root"),
    ("root allOf", with_schema({**WEATHER, "allOf": [{}]}), "not taken at the root"),
    ("bad key", with_schema(props({"StartTime<": {}})), "does not match"),
    ("boolean exclusiveMinimum", with_schema(props({"a": {"exclusiveMinimum": True}})), "draft 2020-12"),
    ("tuple items", with_schema(props({"a": {"items": [{}]}})), "draft 2020-12"),
    ("unknown type", with_schema(props({"a": {"type": "any"}})), "draft 2020-12"),
    ("reference that leads nowhere", with_schema(props({"a": {"$ref": "#/definitions/T"}})), "leads nowhere"),
    ("reference to another host", with_schema(props({"a": {"$ref": "https://example.com/a"}})), "leads nowhere"),
    ("pattern that is none", with_schema(props({"a": {"pattern": "["}})), "not a regular expression"),
    ("key pattern that is none", with_schema(props({"a": {"patternProperties": {"[": {}}}})), "regular expression"),
    ("all deferred", claude(tools=[claude_tool(defer_loading=True)]), "all tools are deferred"),
    ("deferred search", claude(tools=[{**SEARCH, "defer_loading": True}, *TOOLS]), "search tool cannot be deferred"),
    ("deferral no boolean", claude(tools=[*TOOLS, claude_tool("b", defer_loading="yes")]), "true or false"),
    (
        "deferred and cached",
        claude(tools=[SEARCH, claude_tool(defer_loading=True, cache_control=CACHE)]),
        "deferred tool",
    ),
    (
        "deferred toolset",
        claude(tools=[*TOOLS, {"type": "browser_toolset_20260801", "defer_loading": True}]),
        "defers by its members",
    ),
    ("search on an old model", claude(model="claude-opus-4-1", tools=LATER), "takes no tool search"),
    (
        "too many deferred",
        claude(
            tools=[SEARCH, *({"type": "bash_20250124", "name": f"t{n}", "defer_loading": True} for n in range(10_001))]
        ),
        "10000 are taken",
    ),
    ("strict without additionalProperties", with_schema(WEATHER, strict=True), "must be false"),
    ("strict with a limit", strict_schema(type="integer", minimum=1), "minimum: not taken"),
    ("strict with minItems", strict_schema(type="array", items={}, minItems=2), "only 0 and 1"),
    ("strict with a complex enum", strict_schema(enum=[{}]), "only plain values"),
    ("strict with allOf and $ref", strict_schema(allOf=[{"$ref": "#"}]), "inside allOf"),
    ("strict with a format", strict_schema(type="string", format="uri-template"), "this format"),
    ("strict with a lookahead", strict_schema(type="string", pattern="(?=a)"), "a lookaround"),
    ("strict with a word boundary", strict_schema(type="string", pattern=r"\bx"), "word boundary"),
    ("strict with a back reference", strict_schema(type="string", pattern=r"(a)\1"), "back reference"),
    ("strict and recursive", with_schema(RECURSIVE, strict=True), "recursive"),
    (
        "21 strict tools",
        claude(tools=[claude_tool(f"t{n}", strict=True, input_schema=STRICT) for n in range(21)]),
        "21 strict tools",
    ),
    (
        "25 optional parameters",
        with_schema(props({f"p{n}": {"type": "string"} for n in range(25)}, additionalProperties=False), strict=True),
        "25 optional parameters",
    ),
    (
        "17 unions",
        with_schema(
            props({f"p{n}": {"type": ["string", "null"]} for n in range(17)}, additionalProperties=False), strict=True
        ),
        "17 union parameters",
    ),
    ("strict no boolean", claude(tools=[claude_tool(strict=None)]), "strict: must be"),
    ("unknown caller", claude(tools=[claude_tool(allowed_callers=["me"])]), "known callers"),
    ("recursive from code", with_schema(RECURSIVE, allowed_callers=["code_execution_20260120"]), "called from code"),
    (
        "strict from code",
        with_schema(STRICT, strict=True, allowed_callers=["code_execution_20260120"]),
        "called from code",
    ),
    ("examples no list", claude(tools=[claude_tool(input_examples={})]), "must be a list"),
    ("example that does not fit", claude(tools=[claude_tool(input_examples=[{"location": 5}])]), "own schema"),
    ("choice no object", claude(tools=TOOLS, tool_choice="auto"), "must be an object"),
    ("choice with an unknown field", claude(tools=TOOLS, tool_choice={"type": "auto", "name": "a"}), "this field"),
    ("choice without tools", claude(tool_choice={"type": "auto"}), "without tools"),
    ("choice of no tool", claude(tools=TOOLS, tool_choice={"type": "tool", "name": "b"}), "no tool is named"),
    ("forced on Fable 5.1", claude(model="claude-fable-5-1", tools=TOOLS, tool_choice={"type": "any"}), "not taken by"),
    ("forced on Opus 5.5", claude(model="claude-opus-5-5", tools=TOOLS, tool_choice={"type": "any"}), "not taken by"),
    (
        "choice of a tool for code",
        claude(
            tools=[claude_tool(allowed_callers=["code_execution_20260120"])],
            tool_choice={"type": "tool", "name": "get_weather"},
        ),
        "cannot be called directly",
    ),
    (
        "forced with manual thinking",
        claude(
            model="claude-sonnet-4-5",
            max_tokens=4096,
            thinking={"type": "enabled", "budget_tokens": 1024},
            tools=TOOLS,
            tool_choice={"type": "any"},
        ),
        "manual thinking",
    ),
    ("thinking of no type", claude(thinking={}), "known type"),
    ("manual thinking on Opus 5", claude(thinking={"type": "enabled", "budget_tokens": 1024}), "is not taken by"),
    ("no thinking on Fable 5", claude(model="claude-fable-5", thinking={"type": "disabled"}), "is not taken by"),
    (
        "no thinking at high effort",
        claude(thinking={"type": "disabled"}, output_config={"effort": "max"}),
        "at the effort 'max'",
    ),
    ("adaptive on Haiku 4.5", claude(model="claude-haiku-4-5", thinking={"type": "adaptive"}), "is not taken by"),
    (
        "small budget",
        claude(model="claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 100}),
        "from 1024",
    ),
    (
        "budget over max_tokens",
        claude(model="claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 1024}),
        "less than max_tokens",
    ),
    (
        "call without its thinking",
        claude(
            *ROUND,
            model="claude-sonnet-4-5",
            max_tokens=4096,
            thinking={"type": "enabled", "budget_tokens": 1024},
            tools=TOOLS,
        ),
        "must start with thinking",
    ),
    ("five breakpoints", claude(system=[text(cache_control=CACHE)] * 4, cache_control=CACHE), "5 breakpoints"),
    ("breakpoint of no type", claude(cache_control={}), "'ephemeral'"),
    ("breakpoint of a strange life", claude(cache_control={**CACHE, "ttl": "2h"}), "ttl"),
    (
        "long after short",
        claude(tools=[claude_tool(cache_control=CACHE)], system=[text(cache_control={**CACHE, "ttl": "1h"})]),
        "after a breakpoint of '5m'",
    ),
    ("breakpoint on empty text", claude(user(text(), text("", cache_control=CACHE))), "not taken on empty text"),
    (
        "breakpoint on thinking",
        claude(user("a"), assistant({"type": "thinking", "thinking": "", "signature": "s", "cache_control": CACHE})),
        "not taken on thinking",
    ),
    ("system of no text", claude(system=[{"type": "image"}]), "must be a text block"),
    ("system with empty text", claude(system=[text("")]), "missing or empty"),
    ("system a number", claude(system=5), "a string or a list"),
    ("no messages", claude(messages=[]), "missing or empty"),
    ("unknown role", claude({"role": "tool", "content": "a"}), "must be 'user', 'assistant' or 'system'"),
    ("unknown field in a message", claude({"role": "user", "content": "a", "name": "b"}), "this field is not known"),
    ("content null", claude({"role": "user", "content": None}), "a string or a list"),
    ("content empty", claude(user("")), "empty"),
    ("content an empty list", claude({"role": "user", "content": []}), "empty"),
    ("assistant empty in the middle", claude(user("a"), assistant(""), user("b")), "empty"),
    ("white space only", claude(user(" \n")), "white space"),
    ("empty text beside an image", claude(user(text(""), {"type": "image", "source": {}})), "missing or empty"),
    ("block without a type", claude(user({"text": "a"})), "an object with a type"),
    ("call in a user message", claude(user(use()), tools=TOOLS), "has no place in a user message"),
    (
        "result in an assistant message",
        claude(user("a"), assistant(result()), tools=TOOLS),
        "has no place in a assistant",
    ),
    ("unknown field in a block", claude(user(text(id="a"))), "this field is not known"),
    (
        "thinking without a signature",
        claude(user("a"), assistant({"type": "thinking", "thinking": ""}), user("b")),
        "signature",
    ),
    ("redacted without data", claude(user("a"), assistant({"type": "redacted_thinking"}), user("b")), "data: missing"),
    ("call id with a dot", claude(user("a"), assistant(use("a.b")), user(result("a.b")), tools=TOOLS), "must match"),
    ("call of no name", claude(user("a"), assistant(use(name="")), user(result()), tools=TOOLS), "1 to 200"),
    ("call with text for input", claude(user("a"), assistant(use(input="{}")), user(result()), tools=TOOLS), "input"),
    (
        "result of a number",
        claude(user("a"), assistant(use()), user(result(content=5)), tools=TOOLS),
        "a list of blocks",
    ),
    (
        "result with a strange block",
        claude(user("a"), assistant(use()), user(result(content=[use()])), tools=TOOLS),
        "tool result",
    ),
    (
        "result with empty text",
        claude(user("a"), assistant(use()), user(result(content=[text("")])), tools=TOOLS),
        "empty",
    ),
    (
        "error result with an image",
        claude(user("a"), assistant(use()), user(result(content=[{"type": "image"}], is_error=True)), tools=TOOLS),
        "holds text only",
    ),
    ("error no boolean", claude(user("a"), assistant(use()), user(result(is_error=1)), tools=TOOLS), "true or false"),
    (
        "result after text",
        claude(user("a"), assistant(use()), user(text(), result()), tools=TOOLS),
        "after other content",
    ),
    ("call without a result", claude(user("a"), assistant(use()), user("b"), tools=TOOLS), "no result in the next"),
    ("call at the end", claude(user("a"), assistant(use()), tools=TOOLS), "no result in the next"),
    (
        "result a message late",
        claude(user("a"), assistant(use()), user("b"), user(result()), tools=TOOLS),
        "answers no call",
    ),
    ("result of no call", claude(user(result()), tools=TOOLS), "answers no call"),
    ("two results", claude(user("a"), assistant(use()), user(result(), result()), tools=TOOLS), "2 results"),
    ("call id twice", claude(*ROUND, assistant(use()), user(result()), tools=TOOLS), "used twice"),
    (
        "result for a server call",
        claude(user("a"), assistant(server_use()), user(result("srvtoolu_1")), tools=LATER),
        "answers no call",
    ),
    (
        "server result of no call",
        claude(user("a"), assistant(server_result()), user("b"), tools=LATER),
        "no server_tool_use",
    ),
    ("server call left open", claude(user("a"), assistant(server_use()), user("b"), tools=LATER), "has no result"),
    ("calls without tools", claude(*ROUND), "the messages hold tool calls"),
    ("prefill on Opus 5", claude(user("a"), assistant("b")), "no prefilled"),
    (
        "prefill with white space",
        claude(user("a"), assistant("b "), model="claude-sonnet-4-5"),
        "ends with white space",
    ),
    ("system message first", claude(system("a"), assistant("b"), user("c")), "cannot be the first"),
    ("system message after the assistant", claude(user("a"), assistant("b"), system("c")), "must follow a user"),
    ("system message before the user", claude(user("a"), system("b"), user("c")), "before an assistant message"),
    ("system message on Sonnet 5", claude(user("a"), system("b"), model="claude-sonnet-5"), "takes no system messages"),
    ("system message of nothing", claude(user("a"), {"role": "system"}), "missing"),
    ("system message with an image", claude(user("a"), system({"type": "image"})), "no place in a system"),
    (
        "system message between call and result",
        claude(user("a"), assistant(use()), system("b"), user(result()), tools=TOOLS),
        "no result in the next",
    ),
    ("clear_at on a user message", claude({**user("a"), "clear_at": "never"}), "only taken on system"),
    ("clear_at unknown", claude(user("a"), system("b", clear_at="now")), "clear_at"),
    (
        "turn-scoped tool change",
        claude(user("a"), system(change("tool_removal"), clear_at="next_user_message"), tools=TOOLS),
        "holds text only",
    ),
    (
        "turn-scoped with a breakpoint",
        claude(user("a"), system(text(cache_control=CACHE), clear_at="next_user_message")),
        "turn-scoped",
    ),
    (
        "turn-scoped with options",
        claude(user("a"), system("b", clear_at="next_user_message", output_config={"effort": "low"})),
        "output_config: not taken",
    ),
    ("change of no tool", claude(user("a"), system(change("tool_removal", "b")), tools=TOOLS), "which no tool has"),
    (
        "change of no server",
        claude(
            user("a"),
            system({"type": "tool_addition", "tool": {"type": "mcp_toolset_reference", "server_name": "s"}}),
            tools=TOOLS,
        ),
        "no toolset",
    ),
    (
        "removal by definition",
        claude(
            user("a"),
            system({"type": "tool_removal", "tool": {"type": "tool_definition", "definition": claude_tool()}}),
            tools=TOOLS,
        ),
        "has no place in a 'tool_removal'",
    ),
    (
        "bad tool defined later",
        claude(
            user("a"),
            system({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": claude_tool("a b")}}),
            tools=TOOLS,
        ),
        "does not match",
    ),
    (
        "reference to no tool",
        claude(user("a"), assistant(use()), user(result(content=[reference("b")])), tools=TOOLS),
        "which no tool has",
    ),
    (
        "search result that names no tool",
        claude(user("a"), assistant(server_use(), server_result("b")), user("c"), tools=LATER),
        "which no tool has",
    ),
    (
        "reference on an old model",
        claude(
            user("a"),
            assistant(use()),
            user(result(content=[reference()])),
            tools=TOOLS,
            model="claude-3-5-haiku-20241022",
        ),
        "no references",
    ),
]


# --- OpenAI Chat Completions ---------------------------------------------------------------------------------------


def chat_tool(name: str = "get_weather", **fields: Any) -> Json:
    """A function tool of Chat Completions."""
    return {"type": "function", "function": {"name": name, "description": "Weather.", "parameters": WEATHER, **fields}}


def chat(*messages: Json, **fields: Any) -> Json:
    """A request to Chat Completions."""
    return {"model": "gpt-5.4", "messages": list(messages) or [{"role": "user", "content": "Hello"}], **fields}


def chat_call(call_id: str = "call_1", **function: Any) -> Json:
    """A tool call of Chat Completions."""
    base = {"name": "get_weather", "arguments": '{"location": "Paris"}'}
    return {"id": call_id, "type": "function", "function": {**base, **function}}


def calling(*calls: Json, **fields: Any) -> Json:
    """An assistant message that calls tools."""
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def answer(call_id: str = "call_1", content: Any = "Sunny", **fields: Any) -> Json:
    """A tool message."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, **fields}


ASK = {"role": "user", "content": "Weather?"}
CHAT_TOOLS = [chat_tool()]
NAMED = {"type": "function", "function": {"name": "get_weather"}}
CHAT_GOOD: dict[str, Json] = {
    "plain": chat(),
    "developer and parts": chat(
        {"role": "developer", "content": "Be terse."},
        {
            "role": "user",
            "content": [text("a"), {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
        },
    ),
    "a whole round (function calling guide)": chat(ASK, calling(chat_call()), answer(), tools=CHAT_TOOLS),
    "parallel calls": chat(
        ASK,
        calling(chat_call("call_1"), chat_call("call_2")),
        answer("call_2"),
        answer("call_1", [text("a")]),
        {"role": "assistant", "content": "Done."},
        tools=CHAT_TOOLS,
        parallel_tool_calls=True,
    ),
    "a refusal": chat(ASK, {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, ASK),
    "strict (Structured Outputs)": chat(tools=[chat_tool(strict=True, parameters=STRICT)]),
    "no parameters": chat(tools=[{"type": "function", "function": {"name": "now"}}]),
    "custom tool": chat(tools=[{"type": "custom", "custom": {"name": "code", "description": "Runs code."}}]),
    "named choice": chat(tools=CHAT_TOOLS, tool_choice=NAMED),
    "allowed tools": chat(
        tools=CHAT_TOOLS, tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}}
    ),
    "128 tools": chat(tools=[chat_tool(f"t{n}") for n in range(128)]),
}


def chat_schema(schema: Any, **function: Any) -> Json:
    """A request whose one function has these parameters."""
    return chat(tools=[chat_tool(parameters=schema, **function)])


def chat_strict(**fields: Any) -> Json:
    """A request whose one strict function has a property of this schema."""
    return chat_schema(props({"a": fields}, ["a"], additionalProperties=False), strict=True)


def tower(levels: int) -> Json:
    """A strict schema of this many objects inside each other."""
    schema: Json = STRICT
    for _ in range(levels - 1):
        schema = props({"a": schema}, ["a"], additionalProperties=False)
    return schema


SCHEMA_BAD: list[tuple[str, Any, bool, str]] = [
    ("parameters null", None, False, "must be an object"),
    ("root of no type", {"properties": {}}, False, "must be 'object'"),
    ("root without properties", {"type": "object"}, False, "missing from an object schema"),
    *(
        (f"root {word}", {**WEATHER, word: []}, False, f"{word}: not taken")
        for word in ("anyOf", "oneOf", "allOf", "enum", "not")
    ),
    ("array without items", BIG_SCHEMA, False, "missing from an array schema"),
    ("array in a list of types", props({"a": {"type": ["array", "null"]}}), False, "missing from an array"),
    ("array in a definition", {**props({}), "$defs": {"T": {"type": "array"}}}, False, "missing from an array"),
    ("tuple items", props({"a": {"type": "array", "items": [{}]}}), False, "draft 2020-12"),
    ("unknown type", props({"a": {"type": "any"}}), False, "draft 2020-12"),
    ("boolean required", props({"a": {"required": True}}), False, "draft 2020-12"),
    ("null property", props({"a": None}), False, "draft 2020-12"),
    ("pattern Python cannot read", props({"a": {"pattern": r"\p{L}"}}), False, "is not a 'regex'"),
    ("lookahead", props({"a": {"pattern": "(?!a)"}}), False, "lookaround"),
    ("reference that leads nowhere", props({"a": {"$ref": "#/$defs/T"}}), False, "leads nowhere"),
    ("strict: open object", WEATHER, True, "must be false"),
    (
        "strict: optional property",
        props({"a": {"type": "string"}}, [], additionalProperties=False),
        True,
        "every property",
    ),
    (
        "strict: default",
        props({"a": {"type": "string", "default": "b"}}, ["a"], additionalProperties=False),
        True,
        "default",
    ),
    ("strict: no type", props({"a": {"description": "b"}}, ["a"], additionalProperties=False), True, "type: missing"),
    ("strict: allOf", props({"a": {"type": "string", "allOf": []}}, ["a"], additionalProperties=False), True, "allOf"),
    (
        "strict: words beside a reference",
        props({"a": {"$ref": "#", "description": "b"}}, ["a"], additionalProperties=False),
        True,
        "beside a reference",
    ),
    ("strict: 11 levels", tower(11), True, "11 levels of nesting"),
    (
        "strict: 1,001 choices",
        props({"a": {"type": "string", "enum": [str(n) for n in range(1001)]}}, ["a"], additionalProperties=False),
        True,
        "1001 choices",
    ),
    (
        "strict: a long enum",
        props(
            {"a": {"type": "string", "enum": ["x" * 100 + str(n) for n in range(251)]}},
            ["a"],
            additionalProperties=False,
        ),
        True,
        "15000 characters",
    ),
    (
        "strict: 5,001 properties",
        props(
            {f"p{n}": {"type": "null"} for n in range(5001)}, [f"p{n}" for n in range(5001)], additionalProperties=False
        ),
        True,
        "5001 properties",
    ),
    (
        "strict: many characters",
        props({"p" * 120_001: {"type": "null"}}, ["p" * 120_001], additionalProperties=False),
        True,
        "characters of names",
    ),
]
TOOL_FIELD_BAD: list[tuple[str, Json, str]] = [
    ("name with dots", {"name": "a.b"}, "does not match"),
    ("name too long", {"name": "n" * 65}, "does not match"),
    ("name empty", {"name": ""}, "does not match"),
    ("name missing", {"name": None}, "the name is missing"),
    ("long description", {"description": "d" * 1025}, "more than 1024"),
    ("description a number", {"description": 5}, "must be a string"),
    ("strict a word", {"strict": "yes"}, "strict: must be"),
    ("unknown field", {"input_schema": {}}, "this field is not known"),
]
CHAT_BAD: list[tuple[str, Json, str]] = [
    *((label, chat_schema(schema, strict=strict), words) for label, schema, strict, words in SCHEMA_BAD),
    *((label, chat(tools=[chat_tool(**fields)]), words) for label, fields, words in TOOL_FIELD_BAD),
    ("no model", lasting("model", of=chat()), "model: missing"),
    ("unknown field of the request", chat(max_output_tokens=5), "this field is not known"),
    ("NaN", chat(temperature=float("nan")), "not a JSON number"),
    ("description null", chat(tools=[chat_tool(description=None)]), "must be a string"),
    ("tools empty", chat(tools=[]), "one or more"),
    ("129 tools", chat(tools=[chat_tool(f"t{n}") for n in range(129)]), "129 tools"),
    ("name twice", chat(tools=[chat_tool(), chat_tool()]), "given 2 times"),
    ("tool of no type", chat(tools=[lasting("type", of=chat_tool())]), "'function' or 'custom'"),
    ("tool in Responses' form", chat(tools=[{"type": "function", "name": "a"}]), "function: missing"),
    ("deferral", chat(tools=[{**chat_tool(), "defer_loading": True}]), "defer_loading: this field"),
    ("tool search", chat(tools=[{"type": "tool_search"}]), "'function' or 'custom'"),
    ("parallel without tools", chat(parallel_tool_calls=True), "only taken when tools"),
    ("choice without tools", chat(tool_choice="auto"), "only taken when tools"),
    ("choice unknown", chat(tools=CHAT_TOOLS, tool_choice="any"), "'required' or an object"),
    ("choice of unknown type", chat(tools=CHAT_TOOLS, tool_choice={"type": "tool"}), "is not known"),
    (
        "choice of no tool",
        chat(tools=CHAT_TOOLS, tool_choice={"type": "function", "function": {"name": "b"}}),
        "no tool is named",
    ),
    (
        "allowed of no mode",
        chat(tools=CHAT_TOOLS, tool_choice={"type": "allowed_tools", "allowed_tools": {"tools": [NAMED]}}),
        "mode",
    ),
    (
        "allowed of no tool",
        chat(
            tools=CHAT_TOOLS,
            tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function"}]}},
        ),
        "no tool is named",
    ),
    (
        "allowed no list",
        chat(tools=CHAT_TOOLS, tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}),
        "must be a list",
    ),
    ("no messages", chat(messages=[]), "missing or empty"),
    ("unknown role", chat({"role": "model", "content": "a"}), "not a known role"),
    ("unknown field in a message", chat({**ASK, "cache_control": {}}), "this field is not known"),
    ("user content null", chat({"role": "user", "content": None}), "must not be null"),
    ("assistant content null", chat(ASK, {"role": "assistant", "content": None}), "must not be null"),
    ("tool content null", chat(ASK, calling(chat_call()), answer(content=None), tools=CHAT_TOOLS), "must not be null"),
    ("content an empty list", chat({"role": "user", "content": []}), "one or more parts"),
    (
        "part in the wrong place",
        chat({"role": "user", "content": [{"type": "refusal", "refusal": "a"}]}),
        "no place in a user",
    ),
    ("part of no text", chat({"role": "user", "content": [{"type": "text"}]}), "must be a string"),
    (
        "part with a breakpoint",
        chat({"role": "user", "content": [text(cache_control=CACHE)]}),
        "this field is not known",
    ),
    (
        "image of no object",
        chat({"role": "user", "content": [{"type": "image_url", "image_url": "a"}]}),
        "must be an object",
    ),
    (
        "refusal beside text",
        chat(ASK, {"role": "assistant", "content": [text(), {"type": "refusal", "refusal": "a"}]}),
        "stand alone",
    ),
    ("calls empty", chat(ASK, {"role": "assistant", "content": "a", "tool_calls": []}), "one or more"),
    ("calls null", chat(ASK, {"role": "assistant", "content": "a", "tool_calls": None}), "not null"),
    (
        "call of no type",
        chat(ASK, calling(lasting("type", of=chat_call())), answer(), tools=CHAT_TOOLS),
        "must be 'function'",
    ),
    ("call with an index", chat(ASK, calling({**chat_call(), "index": 0}), answer(), tools=CHAT_TOOLS), "this field"),
    ("call id too long", chat(ASK, calling(chat_call("c" * 41)), answer("c" * 41), tools=CHAT_TOOLS), "1 to 40"),
    ("call of no name", chat(ASK, calling(chat_call(name="")), answer(), tools=CHAT_TOOLS), "must match"),
    ("arguments an object", chat(ASK, calling(chat_call(arguments={})), answer(), tools=CHAT_TOOLS), "JSON text"),
    ("arguments cut off", chat(ASK, calling(chat_call(arguments='{"a": ')), answer(), tools=CHAT_TOOLS), "JSON object"),
    (
        "answer without an id",
        chat(ASK, calling(chat_call()), lasting("tool_call_id", of=answer()), tools=CHAT_TOOLS),
        "missing",
    ),
    ("answer of no call", chat(ASK, answer(), tools=CHAT_TOOLS), "answers no call"),
    ("answer twice", chat(ASK, calling(chat_call()), answer(), answer(), tools=CHAT_TOOLS), "a second answer"),
    ("answer too late", chat(ASK, calling(chat_call()), ASK, answer(), tools=CHAT_TOOLS), "is not answered"),
    ("call not answered", chat(ASK, calling(chat_call()), ASK, tools=CHAT_TOOLS), "is not answered"),
    ("call at the end", chat(ASK, calling(chat_call()), tools=CHAT_TOOLS), "is not answered"),
    ("call id twice", chat(ASK, calling(chat_call(), chat_call()), answer(), tools=CHAT_TOOLS), "used 2 times"),
    ("function message of no name", chat(ASK, {"role": "function", "content": "a"}), "name: missing"),
]


# --- OpenAI Responses ----------------------------------------------------------------------------------------------


def tool(name: str = "get_weather", **fields: Any) -> Json:
    """A function tool of the Responses API."""
    base: Json = {"type": "function", "name": name, "description": "Weather.", "parameters": WEATHER, "strict": None}
    return {**base, **fields}


def responses(*items: Json, **fields: Any) -> Json:
    """A request to the Responses API."""
    return {"model": "gpt-5.4", "input": list(items) or "Hello", **fields}


def call(call_id: str = "call_1", **fields: Any) -> Json:
    """A function call item."""
    base = {"type": "function_call", "call_id": call_id, "name": "get_weather", "arguments": '{"location": "Paris"}'}
    return {**base, **fields}


def output(call_id: str = "call_1", **fields: Any) -> Json:
    """A function call output item."""
    return {"type": "function_call_output", "call_id": call_id, "output": "Sunny", **fields}


def thought(**fields: Any) -> Json:
    """A reasoning item."""
    return {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}], **fields}


def space(*tools: Json, **fields: Any) -> Json:
    """A namespace."""
    return {"type": "namespace", "name": "crm", "description": "CRM tools.", "tools": list(tools), **fields}


OPEN_TOOLS = [tool()]
TOOL_SEARCH = {"type": "tool_search"}
CLIENT_SEARCH = {"type": "tool_search", "execution": "client", "description": "Search.", "parameters": props({})}
SEARCHED = (
    {"type": "tool_search_call", "execution": "client", "call_id": "call_s", "arguments": {"goal": "weather"}},
    {"type": "tool_search_output", "execution": "client", "call_id": "call_s", "tools": [tool(defer_loading=True)]},
)
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
ADDED = {"type": "additional_tools", "role": "developer", "tools": [tool("late")]}
OPEN_GOOD: dict[str, Json] = {
    "text": responses(),
    "messages": responses(
        {"role": "developer", "content": "a"},
        ASK,
        SAID,
        {"role": "user", "content": [{"type": "input_text", "text": "b"}]},
    ),
    "a whole round (function calling guide)": responses(ASK, call(id="fc_1"), output(), tools=OPEN_TOOLS),
    "text between call and output": responses(ASK, call(), SAID, output(), tools=OPEN_TOOLS),
    "reasoning before a call": responses(ASK, thought(), call(), output(), tools=OPEN_TOOLS),
    "reasoning that is not stored": responses(ASK, thought(encrypted_content="e"), SAID, store=False),
    "hosted search (Tool search)": responses(ASK, tools=[space(tool(defer_loading=True)), TOOL_SEARCH]),
    "client search": responses(ASK, *SEARCHED, call(), output(), tools=[CLIENT_SEARCH]),
    "server search": responses(
        ASK,
        {"type": "tool_search_call", "execution": "server", "call_id": None, "arguments": {"paths": ["crm"]}},
        {"type": "tool_search_output", "execution": "server", "call_id": None, "tools": [space(tool())]},
        call(namespace="crm"),
        output(),
        tools=[space(tool(defer_loading=True)), TOOL_SEARCH],
    ),
    "tools added": responses(ASK, ADDED, call(name="late"), output(), tool_choice="auto"),
    "custom tool": responses(
        ASK,
        {"type": "custom_tool_call", "call_id": "call_1", "name": "code", "input": "1 + 1"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "2"},
        tools=[{"type": "custom", "name": "code"}],
    ),
    "output of an earlier response": responses(output(), previous_response_id="resp_1", tools=OPEN_TOOLS),
    "strict": responses(tools=[tool(strict=True, parameters=STRICT)]),
    "hosted tools": responses(tools=[{"type": "web_search"}], tool_choice={"type": "web_search"}),
    "allowed tools": responses(
        tools=OPEN_TOOLS,
        tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]},
    ),
    "reference": responses({"type": "item_reference", "id": "msg_1"}, ASK),
}
OPEN_BAD: list[tuple[str, Json, str]] = [
    *(
        (label, responses(tools=[tool(parameters=schema, strict=strict)]), words)
        for label, schema, strict, words in SCHEMA_BAD
        if schema is not None
    ),
    *((label, responses(tools=[tool(**fields)]), words) for label, fields, words in TOOL_FIELD_BAD),
    ("no model", lasting("model", of=responses()), "model: missing"),
    ("unknown field of the request", responses(messages=[]), "this field is not known"),
    ("NaN", responses(temperature=float("inf")), "not a JSON number"),
    ("input a number", responses(input=5), "a string or a list"),
    ("two histories", responses(previous_response_id="resp_1", conversation="conv_1"), "together with conversation"),
    ("tools no list", responses(tools={}), "must be a list"),
    ("129 tools", responses(tools=[tool(f"t{n}") for n in range(129)]), "129 tools"),
    ("name twice", responses(tools=[tool(), tool()]), "given 2 times"),
    ("name twice in a namespace", responses(tools=[space(tool(), tool())]), "given 2 times"),
    ("namespace twice", responses(tools=[space(tool()), space(tool())]), "given 2 times"),
    ("tool of unknown type", responses(tools=[{"type": "tool"}]), "no known type"),
    ("tool in Chat's form", responses(tools=[chat_tool()]), "the name is missing"),
    ("no parameters", responses(tools=[lasting("parameters", of=tool())]), "parameters: missing"),
    ("strict without parameters", responses(tools=[tool(strict=True, parameters=None)]), "needs parameters"),
    ("deferral no boolean", responses(tools=[tool(defer_loading=1)]), "true or false"),
    ("deferred without search", responses(tools=[tool(defer_loading=True)]), "without a tool_search"),
    (
        "deferred in a namespace without search",
        responses(tools=[space(tool(defer_loading=True))]),
        "without a tool_search",
    ),
    ("search without deferred tools", responses(tools=[*OPEN_TOOLS, TOOL_SEARCH]), "without deferred tools"),
    (
        "search on an old model",
        responses(model="gpt-5.2", tools=[tool(defer_loading=True), TOOL_SEARCH]),
        "takes no tool search",
    ),
    ("search of unknown execution", responses(tools=[{**CLIENT_SEARCH, "execution": "me"}]), "execution"),
    (
        "search with bad parameters",
        responses(tools=[{**CLIENT_SEARCH, "parameters": {"type": "string"}}]),
        "must be 'object'",
    ),
    ("namespace without a name", responses(tools=[space(tool(), name="")]), "1 to 64"),
    ("namespace without a description", responses(tools=[space(tool(), description=None)]), "must be a string"),
    ("namespace empty", responses(tools=[space()]), "one or more"),
    ("namespace deferred itself", responses(tools=[space(tool(), defer_loading=True), TOOL_SEARCH]), "this field"),
    ("namespace in a namespace", responses(tools=[space(space(tool()))]), "functions and custom tools only"),
    ("mcp without a label", responses(tools=[{"type": "mcp"}]), "server_label"),
    ("choice without tools", responses(tool_choice="auto"), "only taken when tools"),
    ("choice unknown", responses(tools=OPEN_TOOLS, tool_choice="any"), "'required' or an object"),
    ("choice of no tool", responses(tools=OPEN_TOOLS, tool_choice={"type": "function", "name": "b"}), "is named 'b'"),
    ("choice in Chat's form", responses(tools=OPEN_TOOLS, tool_choice=NAMED), "is named None"),
    ("choice of no server", responses(tools=OPEN_TOOLS, tool_choice={"type": "mcp", "server_label": "b"}), "labelled"),
    ("choice of unknown type", responses(tools=OPEN_TOOLS, tool_choice={"type": "tool"}), "is not known"),
    (
        "choice of no hosted tool",
        responses(tools=OPEN_TOOLS, tool_choice={"type": "file_search"}),
        "no tool of the type",
    ),
    ("allowed of no mode", responses(tools=OPEN_TOOLS, tool_choice={"type": "allowed_tools", "tools": []}), "mode"),
    (
        "allowed no list",
        responses(tools=OPEN_TOOLS, tool_choice={"type": "allowed_tools", "mode": "auto"}),
        "must be a list",
    ),
    ("item of unknown type", responses({"type": "tool_result"}), "no known type of item"),
    ("unknown field in an item", responses({**ASK, "name": "a"}), "this field is not known"),
    ("role tool", responses({"role": "tool", "content": "a"}), "not a known role"),
    ("content null", responses({"role": "user", "content": None}), "one or more parts"),
    ("content empty", responses({"role": "user", "content": []}), "one or more parts"),
    (
        "user part for the assistant",
        responses(ASK, {"role": "assistant", "content": [{"type": "input_text", "text": "a"}]}),
        "no place here",
    ),
    (
        "assistant part for the user",
        responses({"role": "user", "content": [{"type": "output_text", "text": "a"}]}),
        "no place here",
    ),
    ("part of no text", responses({"role": "user", "content": [{"type": "input_text"}]}), "must be a string"),
    ("status unknown", responses(ASK, call(status="done"), output(), tools=OPEN_TOOLS), "is not known"),
    ("call without an id", responses(ASK, {**call(), "call_id": None}, tools=OPEN_TOOLS), "1 to 64"),
    ("call id too long", responses(ASK, call("c" * 65), output("c" * 65), tools=OPEN_TOOLS), "1 to 64"),
    ("call of a bad name", responses(ASK, call(name="a.b"), output(), tools=OPEN_TOOLS), "does not match"),
    ("arguments an object", responses(ASK, call(arguments={}), output(), tools=OPEN_TOOLS), "JSON object"),
    ("item id of a call", responses(ASK, call(id="call_1"), output(), tools=OPEN_TOOLS), "begin with 'fc'"),
    ("item id with a dot", responses({**SAID, "id": "msg.1"}), "letters, digits"),
    ("item id twice", responses({**SAID, "id": "msg_1"}, {**SAID, "id": "msg_1"}), "is used twice"),
    (
        "custom call without input",
        responses(ASK, {"type": "custom_tool_call", "call_id": "c", "name": "a"}),
        "must be a string",
    ),
    ("output null", responses(ASK, call(), output(output=None), tools=OPEN_TOOLS), "a list of parts"),
    ("output with a strange part", responses(ASK, call(), output(output=[text()]), tools=OPEN_TOOLS), "no place here"),
    ("output too long", responses(ASK, call(), output(output="x" * 10_485_761), tools=OPEN_TOOLS), "10485760"),
    ("output of no call", responses(ASK, output(), tools=OPEN_TOOLS), "no call before it"),
    ("output before its call", responses(ASK, output(), call(), tools=OPEN_TOOLS), "no call before it"),
    ("output twice", responses(ASK, call(), output(), output(), tools=OPEN_TOOLS), "a second output"),
    ("call without an output", responses(ASK, call(), ASK, tools=OPEN_TOOLS), "has no output"),
    ("call id twice", responses(ASK, call(), output(), call(), tools=OPEN_TOOLS), "used by two calls"),
    ("call without its namespace", responses(ASK, call(), output(), tools=[space(tool())]), "namespace only"),
    ("search call without an id", responses(ASK, lasting("call_id", of=SEARCHED[0]), tools=[CLIENT_SEARCH]), "1 to 64"),
    (
        "search call without arguments",
        responses(ASK, lasting("arguments", of=SEARCHED[0]), SEARCHED[1], tools=[CLIENT_SEARCH]),
        "missing",
    ),
    (
        "search of unknown execution",
        responses(ASK, {**SEARCHED[0], "execution": "me"}, SEARCHED[1], tools=[CLIENT_SEARCH]),
        "'server' or 'client'",
    ),
    ("search call without an output", responses(ASK, SEARCHED[0], tools=[CLIENT_SEARCH]), "has no output"),
    ("search output of no call", responses(ASK, SEARCHED[1], tools=[CLIENT_SEARCH]), "no call before it"),
    (
        "search output without tools",
        responses(ASK, SEARCHED[0], lasting("tools", of=SEARCHED[1]), tools=[CLIENT_SEARCH]),
        "must be a list",
    ),
    (
        "search output with a bad tool",
        responses(ASK, SEARCHED[0], {**SEARCHED[1], "tools": [tool("a.b")]}, tools=[CLIENT_SEARCH]),
        "does not match",
    ),
    ("tools added by the user", responses(ASK, {**ADDED, "role": "user"}), "must be 'developer'"),
    ("bad tool added", responses(ASK, {**ADDED, "tools": [tool("a b")]}), "does not match"),
    ("tool added twice", responses(ASK, {**ADDED, "tools": [tool(), tool()]}), "given 2 times"),
    ("reasoning without an id", responses(ASK, lasting("id", of=thought()), SAID), "id: missing"),
    ("reasoning without a summary", responses(ASK, lasting("summary", of=thought()), SAID), "must be a list"),
    ("reasoning with a strange summary", responses(ASK, thought(summary=[text()]), SAID), "summary_text"),
    ("reasoning at the end", responses(ASK, thought()), "without the item that followed"),
    ("reasoning before a user message", responses(ASK, thought(), ASK), "without the item that followed"),
    ("reasoning lost", responses(ASK, thought(), SAID, store=False), "nothing is stored"),
    ("reference to nothing", responses({"type": "item_reference"}), "id: missing"),
]


# --- MCP -----------------------------------------------------------------------------------------------------------


def listed(**fields: Any) -> Json:
    """A list of one tool."""
    return {"tools": [{"name": "get_weather", "description": "Weather.", "inputSchema": WEATHER, **fields}]}


MCP_GOOD: dict[str, Json] = {
    "empty": {"tools": []},
    "plain (spec)": listed(title="Weather Information Provider"),
    "output schema (spec)": listed(outputSchema=props({"temperature": {"type": "number"}}, ["temperature"])),
    "everything": {
        **listed(
            annotations={"title": "Weather", "readOnlyHint": True},
            execution={"taskSupport": "optional"},
            icons=[{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}],
            _meta={"example.com/a": 1},
        ),
        "nextCursor": "next",
    },
    "draft 7": listed(inputSchema={"$schema": "http://json-schema.org/draft-07/schema#", **WEATHER}),
    "no arguments": listed(inputSchema=props({}, additionalProperties=False)),
}
MCP_BAD: list[tuple[str, Json, str]] = [
    *(
        (label, listed(inputSchema=schema), words)
        for label, schema, strict, words in SCHEMA_BAD
        if not strict and schema
    ),
    ("no tools", {}, "tools: must be a list"),
    ("cursor null", {**listed(), "nextCursor": None}, "nextCursor"),
    ("NaN", listed(inputSchema=props({"a": {"default": float("nan")}})), "not a JSON number"),
    ("tool no object", {"tools": ["a"]}, "must be an object"),
    ("129 tools", {"tools": [{**listed()["tools"][0], "name": f"t{n}"} for n in range(129)]}, "129 tools"),
    ("name twice", {"tools": listed()["tools"] * 2}, "given 2 times"),
    ("name missing", listed(name=None), "missing"),
    ("name with dots", listed(name="admin.tools.list"), "other than letters"),
    ("name with spaces", listed(name="a b"), "other than letters"),
    ("name too long", listed(name="n" * 57), "56 are taken"),
    ("title null", listed(title=None), "must be a string"),
    ("description null", listed(description=None), "must be a string"),
    ("long description", listed(description="d" * 1025), "1025 characters"),
    ("schema null", listed(inputSchema=None), "must be an object"),
    ("bad key", listed(inputSchema=props({"filter[name]": {}})), "does not match"),
    ("property true", listed(inputSchema=props({"a": True})), "must be an object"),
    ("properties a list", listed(inputSchema={"type": "object", "properties": []}), "must be an object"),
    ("required null", listed(inputSchema={**WEATHER, "required": None}), "list of strings"),
    ("$schema a number", listed(inputSchema={**WEATHER, "$schema": 7}), "must be a string"),
    ("output null", listed(outputSchema=None), "must be an object"),
    ("output an array", listed(outputSchema={"type": "array"}), "must be 'object'"),
    ("output not valid", listed(outputSchema=props({"a": {"type": "any"}})), "draft 2020-12"),
    ("annotations a list", listed(annotations=[]), "must be an object"),
    ("hint a word", listed(annotations={"readOnlyHint": "yes"}), "wrong type"),
    ("execution a word", listed(execution="later"), "must be an object"),
    ("task support unknown", listed(execution={"taskSupport": "always"}), "'forbidden'"),
    ("icon without a source", listed(icons=[{}]), "a `src`"),
    ("meta a list", listed(_meta=[]), "must be an object"),
]

JUDGES: dict[str, tuple[Judge, dict[str, Json], list[tuple[str, Json, str]]]] = {
    "anthropic": (anthropic_messages.problems, CLAUDE_GOOD, CLAUDE_BAD),
    "chat": (openai_chat.problems, CHAT_GOOD, CHAT_BAD),
    "responses": (openai_responses.problems, OPEN_GOOD, OPEN_BAD),
    "mcp": (mcp_tools.problems, MCP_GOOD, MCP_BAD),
}
GOOD = [
    pytest.param(judge, case, id=f"{name}: {label}")
    for name, (judge, good, _) in JUDGES.items()
    for label, case in good.items()
]
BAD = [
    pytest.param(judge, case, words, id=f"{name}: {label}")
    for name, (judge, _, bad) in JUDGES.items()
    for label, case, words in bad
]
