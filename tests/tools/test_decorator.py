"""`@tool` and `tool_from_function`: what they say of a function, and how the tool runs it."""

from __future__ import annotations

import contextvars
import functools
import math
import threading

import pytest

from tests.kit.tools import run
from toolsearch import FunctionToolCallback, JsonObject, ToolContext, tool, tool_from_function
from toolsearch.errors import BadArgumentsError, BadToolError


@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b


def test_a_decorated_function_is_still_itself() -> None:
    assert add(1, 1) == 2
    assert add.__name__ == "add"


def test_the_definition_is_read_off_the_function() -> None:
    definition = tool_from_function(add).definition

    assert definition.name == "add"
    assert definition.description == "Add two numbers."
    assert definition.input_schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "the first"},
            "b": {"type": "integer", "description": "the second", "default": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("get_current_weather", "get current weather"),
        ("getCurrentWeather", "get current weather"),
        ("parseHTTPResponse", "parse http response"),
        ("listURLs_v2", "list urls v2"),
        ("s3_upload", "s3 upload"),
        ("_", "_"),
    ],
)
def test_a_function_without_any_text_is_described_by_its_name_in_words(name: str, description: str) -> None:
    def function() -> None: ...

    function.__name__ = name
    assert tool_from_function(function).definition.description == description
    assert tool_from_function(function, server="My Server").definition.description == description
    assert FunctionToolCallback.build(name, function).definition.description == description


def test_a_docstring_of_parameters_alone_leaves_the_description_to_the_name() -> None:
    @tool(name="addNumbers")
    def add_up(numbers: list[int]) -> int:
        """:param numbers: what to add"""
        return sum(numbers)

    assert tool_from_function(add_up).definition.description == "add numbers"


def test_options_replace_what_the_function_says() -> None:
    @tool(
        "sum", "Sums.", title="Sum", tags=["math"], annotations={"readOnlyHint": True}, return_direct=True, timeout_s=3
    )
    def add_up(numbers: list[int]) -> int:
        """Not this."""
        return sum(numbers)

    made = tool_from_function(add_up)
    assert (made.name, made.definition.description, made.definition.title) == ("sum", "Sums.", "Sum")
    assert made.definition.tags == ("math",)
    assert made.definition.annotations == {"readOnlyHint": True}
    assert (made.metadata.return_direct, made.metadata.timeout_s) == (True, 3)


def test_a_server_becomes_the_prefix_and_keeps_the_options() -> None:
    @tool(name="total", tags=["math"])
    def add_up(numbers: list[int]) -> int:
        return sum(numbers)

    definition = tool_from_function(add_up, server="my.calc").definition
    assert (definition.name, definition.local_name, definition.server) == ("my_calc__total", "total", "my.calc")
    assert definition.tags == ("math",)


async def test_a_wrapper_of_a_decorated_function_is_what_runs() -> None:
    @functools.wraps(add)
    def doubled(a: int, b: int = 2) -> int:
        return 2 * add(a, b)

    assert await run(tool_from_function(doubled), a=1) == 6


async def test_an_async_function_is_awaited() -> None:
    async def greet(name: str) -> str:
        return f"Hello {name}"

    assert await run(tool_from_function(greet), name="Ada") == "Hello Ada"


async def test_a_plain_function_runs_in_a_worker_thread_and_sees_the_callers_context_variables() -> None:
    user = contextvars.ContextVar[str]("user")
    user.set("ada")

    def who() -> tuple[str, bool]:
        return user.get(), threading.current_thread() is threading.main_thread()

    assert await run(tool_from_function(who)) == ("ada", False)


async def test_the_context_is_injected_and_no_model_sees_it() -> None:
    def whoami(context: ToolContext, greeting: str = "Hi") -> str:
        return f"{greeting} {context['user']}"

    made = tool_from_function(whoami)
    assert list(made.definition.input_schema["properties"]) == ["greeting"]
    assert await run(made, ToolContext(user="ada")) == "Hi ada"
    with pytest.raises(BadArgumentsError, match="context"):
        await made.callback.call({"context": {"user": "mallory"}}, ToolContext(user="ada"))


async def test_a_builtin_with_star_arguments_takes_them_as_a_list() -> None:
    assert await run(tool_from_function(math.gcd), integers=[12, 18]) == 6


async def test_stop_iteration_is_a_failure_and_not_a_hang() -> None:
    def first(items: list[int]) -> int:
        return next(iter(items))

    with pytest.raises(RuntimeError, match="StopIteration"):
        await run(tool_from_function(first), items=[])


async def test_wrong_arguments_are_named_without_repeating_their_values() -> None:
    with pytest.raises(BadArgumentsError) as raised:
        await run(tool_from_function(add), a="hunter2", c=1)

    message = str(raised.value)
    assert "a: " in message
    assert "c: " in message
    assert "hunter2" not in message


def test_an_illegal_name_is_refused_with_one_that_would_do() -> None:
    with pytest.raises(BadToolError, match="'get_weather'"):
        tool("get weather")(add)


def test_what_cannot_be_a_tool_is_refused_with_the_reason() -> None:
    def numbers():
        yield 1

    with pytest.raises(BadToolError, match="generator"):
        tool(numbers)
    with pytest.raises(BadToolError, match="class"):
        tool_from_function(dict)
    with pytest.raises(BadToolError, match="signature cannot be read"):
        tool_from_function(max)
    with pytest.raises(BadToolError, match="timeout_s"):
        tool(timeout_s=0)


async def test_a_partial_and_a_callable_object_are_functions_too() -> None:
    class Scale:
        def __call__(self, factor: int) -> int:
            """Scale by a factor."""
            return 10 * factor

    made = tool_from_function(Scale(), name="scale")
    assert made.definition.description == "Scale by a factor."
    assert await run(made, factor=3) == 30
    assert await run(tool_from_function(functools.partial(add, 5)), b=1) == 6


async def test_a_schema_given_by_hand_is_shown_as_it_stands_and_arguments_are_converted_all_the_same() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^\p{N}+$"}}, "required": ["a"]}
    made = tool_from_function(add, input_schema=schema)

    assert made.definition.input_schema == schema
    assert made.definition.description == "Add two numbers."
    assert await run(made, a="3") == 5


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({}, "whose type is 'object'"),
        ([("type", "object")], "whose type is 'object'"),
        ({"type": "object", "properties": {"a": {"default": math.nan}}}, "plain JSON"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, r"no JSON Schema, at \$.properties.a.type"),
        ({"type": "object", "properties": {"a": {}, "c": {}}}, "'c', but the function does not take it"),
        ({"type": "object", "properties": {"b": {}}}, "lacks the property 'a'"),
    ],
)
def test_a_schema_by_which_the_function_could_not_be_called_is_refused(schema: JsonObject, reason: str) -> None:
    with pytest.raises(BadToolError, match=f"^add cannot be a tool: input_schema .*{reason}"):
        tool_from_function(add, input_schema=schema)


def test_a_schema_given_by_hand_may_name_what_an_open_ended_function_takes_and_leave_it_to_alternatives() -> None:
    def record(kind: str, **more: int) -> None: ...

    anything = {"type": "object", "properties": {"kind": {}, "count": {}}}
    either = {"type": "object", "anyOf": [{"properties": {"kind": {"const": "a"}}, "required": ["kind"]}]}
    for schema in (anything, either):
        assert tool_from_function(record, input_schema=schema).definition.input_schema == schema
