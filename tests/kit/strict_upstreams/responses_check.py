"""Everything the Responses API refuses, and what is left of a good request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import fields
from .brain import Turn, VisibleTool
from .cache import Segment
from .core import Json, Refusal, canonical
from .gpt_common import (
    Turns,
    check_function,
    duplicate,
    effort_of,
    joined,
    limit_to,
    parsed,
    require_fields,
    sampling,
    tools_list,
    traits_of,
    unknown_body,
    unlisted,
)
from .ledger import Ledger
from .models import GptTraits
from .toolrules import gpt_array, gpt_length, gpt_name, kind

PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc"}
ID_LENGTH = 64


@dataclass
class CheckedResponses:
    """A request that passed every check."""

    model: str
    tools: list[VisibleTool]
    definitions: dict[str, Json]
    deferred: dict[str, VisibleTool]
    turns: list[Turn]
    items: list[Json]
    segments: list[Segment]
    must: str | None
    parallel: bool
    reasoning: bool
    summarised: bool
    store: bool
    search: str | None
    body: Json = field(default_factory=dict)


def check_responses(body: Any, models: Mapping[str, GptTraits], ledger: Ledger) -> CheckedResponses:
    """Check a request body and turn it into what the model and the cache need."""
    traits = traits_of(body, models)
    unknown_body(body, fields.RESPONSES_BODY)
    instructions = body.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        raise Refusal(
            "shape", "Invalid type for 'instructions': expected a string.", param="instructions", code="invalid_type"
        )
    most = body.get("max_output_tokens")
    if most is not None and (not isinstance(most, int) or most < 16):
        raise Refusal(
            "max_tokens",
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, "
            f"but got {most} instead.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )
    config = body.get("reasoning") or {}
    reasoning = effort_of(config.get("effort"), traits, "reasoning.effort")
    sampling(body, reasoning)
    items = _input(body, ledger)
    shelf = _Shelf(traits)
    shelf.add(body.get("tools"), "tools")
    _items(items, shelf, ledger)
    _pairing(items, ledger)
    _reasoning(items, ledger)
    shelf.finish()
    must, names = _choice(body, shelf)
    return CheckedResponses(
        body["model"],
        limit_to(list(shelf.visible.values()), names),
        shelf.definitions,
        shelf.deferred,
        _turns(body, items),
        items,
        _segments(body, items),
        must,
        body.get("parallel_tool_calls") is not False,
        reasoning,
        bool(config.get("summary") or config.get("generate_summary")),
        body.get("store") is not False,
        shelf.search,
        body,
    )


class _Shelf:
    """The tools of one request, from `tools`, `additional_tools` and tool searches."""

    def __init__(self, traits: GptTraits) -> None:
        self.traits = traits
        self.visible: dict[str, VisibleTool] = {}
        self.deferred: dict[str, VisibleTool] = {}
        self.definitions: dict[str, Json] = {}
        self.search: str | None = None
        self.any = False
        self.deferring = False

    @staticmethod
    def _key(name: str, namespace: str | None) -> str:
        return f"{namespace}.{name}" if namespace else name

    def add(self, value: Any, where: str, origin: Any = "tools") -> None:
        """Check and add a list of tools."""
        seen: set[str] = set()
        for index, tool in enumerate(tools_list(value, where)):
            spot = f"{where}[{index}]"
            self.any = True
            form = tool.get("type") if isinstance(tool, dict) else None
            if form == "namespace":
                require_fields(tool, ("type", "name", "description", "tools"), (), spot, "responses")
                space = gpt_name(tool["name"], f"{spot}.name")
                if f"{space}." in seen:
                    raise duplicate(space, where)
                seen.add(f"{space}.")
                for inner, one in enumerate(gpt_array(tool["tools"], f"{spot}.tools", 1, None, "array")):
                    self._one(one, f"{spot}.tools[{inner}]", origin, seen, space, tool)
            elif form in ("function", "custom"):
                self._one(tool, spot, origin, seen, None, tool)
            elif form == "tool_search":
                require_fields(tool, ("type",), fields.TOOL_SEARCH_TOOL, spot, "responses")
                if not self.traits.tool_search:
                    raise Refusal(
                        "search_model",
                        "Tool 'tool_search' is not supported with this model.",
                        param=spot,
                        code="invalid_value",
                    )
                if "tool_search" in seen:
                    raise duplicate("tool_search", where)
                seen.add("tool_search")
                self.search = tool.get("execution") or "server"
                self.visible["tool_search"] = VisibleTool(
                    "tool_search", tool.get("description") or "", tool.get("parameters") or {}, "native_search"
                )
            elif form not in fields.HOSTED_TOOLS:
                known = ", ".join(
                    repr(name)
                    for name in sorted({"function", "custom", "namespace", "tool_search", *fields.HOSTED_TOOLS})
                )
                raise Refusal(
                    "tool_type",
                    f"Invalid value: '{form}'. Supported values are: {known}.",
                    param=f"{spot}.type",
                    code="invalid_value",
                )

    def _one(self, tool: Any, spot: str, origin: Any, seen: set[str], space: str | None, outer: Json) -> None:
        form = tool.get("type") if isinstance(tool, dict) else None
        if form == "function":
            require_fields(tool, ("type", "name"), fields.FUNCTION_TOOL, spot, "responses")
            check_function(tool, spot)
        elif form == "custom":
            require_fields(tool, ("type", "name"), fields.CUSTOM_RESPONSES_TOOL, spot, "responses")
            gpt_name(tool["name"], f"{spot}.name")
        else:
            raise Refusal(
                "tool_type",
                f"Invalid value: '{form}'. Supported values are: 'function' and 'custom'.",
                param=f"{spot}.type",
                code="invalid_value",
            )
        key = self._key(tool["name"], space)
        if key in seen:
            raise duplicate(key, spot.split("[", maxsplit=1)[0])
        seen.add(key)
        before = self.definitions.get(key)
        bare = {name: value for name, value in tool.items() if name != "defer_loading"}
        if (
            before is not None
            and origin == "added"
            and {name: value for name, value in before.items() if name != "defer_loading"} != bare
        ):
            raise duplicate(key, spot.split("[", maxsplit=1)[0])
        one = VisibleTool(
            tool["name"],
            tool.get("description") or "",
            tool.get("parameters") or {},
            "custom" if form == "custom" else "function",
            True,
            origin,
            space,
        )
        self.definitions[key] = tool if space is None else {**outer, "tools": [tool]}
        if tool.get("defer_loading") and origin != "loaded":
            self.deferring = True
            if not self.traits.tool_search:
                raise Refusal(
                    "search_model",
                    f"'{spot}.defer_loading' is not supported with this model.",
                    param=f"{spot}.defer_loading",
                    code="invalid_value",
                )
            self.deferred[key] = one
        else:
            self.deferred.pop(key, None)
            self.visible[key] = one

    def finish(self) -> None:
        """Deferred tools and the search belong together."""
        deferring = self.deferring
        if deferring and self.search is None:
            raise Refusal(
                "deferred_without_search",
                "Deferred tools require a 'tool_search' tool in 'tools'.",
                param="tools",
                code="invalid_value",
            )
        if self.search == "server" and not deferring:
            raise Refusal(
                "search_without_deferred",
                "The 'tool_search' tool requires at least one tool with 'defer_loading' set to true.",
                param="tools",
                code="invalid_value",
            )


def _input(body: Json, ledger: Ledger) -> list[Json]:
    """The whole input: stored items of the previous response, then the request's own, references resolved."""
    value = body.get("input")
    previous = body.get("previous_response_id")
    if value is None and previous is None:
        raise Refusal(
            "missing_field", "Missing required parameter: 'input'.", param="input", code="missing_required_parameter"
        )
    items: list[Json] = []
    if previous is not None:
        if previous not in ledger.stored:
            raise Refusal(
                "previous_response",
                f"Previous response with id '{previous}' not found.",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        items += ledger.stored[previous]
    if isinstance(value, str):
        items.append({"type": "message", "role": "user", "content": value})
    elif value is not None:
        for item in gpt_array(value, "input", 0 if previous else 1, None, "no_messages"):
            is_reference = isinstance(item, dict) and (item.get("type") == "item_reference" or set(item) == {"id"})
            held = ledger.stored_items.get(str(item.get("id"))) if is_reference else item
            if held is None and is_reference:
                raise _not_found(str(item.get("id")))
            items.append(held)
    return items


def _not_found(name: str) -> Refusal:
    return Refusal(
        "item_missing",
        f"Item with id '{name}' not found. Items are not persisted when `store` is set to "
        "false. Try again with `store` set to true, or remove this item from your input.",
        status=404,
        param="input",
    )


def _items(items: list[Any], shelf: _Shelf, ledger: Ledger) -> None:
    """Shapes, ids and fields of every item; tools that items bring along."""
    ids: set[str] = set()
    open_calls: set[str] = set()
    for index, item in enumerate(items):
        where = f"input[{index}]"
        form = item.get("type") if isinstance(item, dict) else None
        if form is None and isinstance(item, dict) and "role" in item:
            form = "message"
        if form in fields.OTHER_ITEMS:
            continue
        if not isinstance(form, str) or form not in fields.ITEMS:
            known = ", ".join(repr(name) for name in sorted({*fields.ITEMS, *fields.OTHER_ITEMS}))
            raise Refusal(
                "item_type",
                f"Invalid value: '{form}'. Supported values are: {known}.",
                param=f"{where}.type",
                code="invalid_value",
            )
        needed, optional = fields.ITEMS[form]
        require_fields(item, needed, optional, where, "responses")
        _item_id(item, form, where, ids)
        if form == "message":
            _message(item, where)
        if form in ("function_call", "custom_tool_call"):
            gpt_length(item["call_id"], ID_LENGTH, f"{where}.call_id", "call_id_length")
            gpt_name(item["name"], f"{where}.name", "call_name")
            key = "arguments" if form == "function_call" else "input"
            if not isinstance(item[key], str):
                raise Refusal(
                    "arguments_string",
                    f"Invalid type for '{where}.{key}': expected a string, but got {kind(item[key])} instead.",
                    param=f"{where}.{key}",
                    code="invalid_type",
                )
            issued = ledger.item_of_call.get(item["call_id"])
            if issued is not None and item.get("id") is not None and item["id"] != issued:
                raise _not_found(str(item["id"]))
            open_calls.add(item["call_id"])
        if form in ("function_call_output", "custom_tool_call_output"):
            gpt_length(item["call_id"], ID_LENGTH, f"{where}.call_id", "call_id_length")
            open_calls.discard(item["call_id"])
            output = item["output"]
            if isinstance(output, list):
                _parts(output, f"{where}.output", ("input_text", "input_image", "input_file"))
            elif not isinstance(output, str):
                raise Refusal(
                    "content_null",
                    f"Invalid type for '{where}.output': expected one of a string or array of "
                    f"objects, but got {kind(output)} instead.",
                    param=f"{where}.output",
                    code="invalid_type",
                )
        if form == "additional_tools":
            if not shelf.traits.additional_tools:
                raise Refusal(
                    "additional_model",
                    "Invalid value: 'additional_tools' is not supported with this model.",
                    param=f"{where}.type",
                    code="invalid_value",
                )
            if item["role"] != "developer":
                raise Refusal(
                    "additional_role",
                    f"Invalid value: '{item['role']}'. Supported values are: 'developer'.",
                    param=f"{where}.role",
                    code="invalid_value",
                )
            if open_calls:
                raise Refusal(
                    "additional_place",
                    f"Invalid '{where}': 'additional_tools' cannot come between a tool call and its output.",
                    param=where,
                    code="invalid_value",
                )
            shelf.add(item["tools"], f"{where}.tools", "added")
        if form == "tool_search_output":
            shelf.add(item["tools"], f"{where}.tools", "loaded")


def _item_id(item: Json, form: str, where: str, ids: set[str]) -> None:
    name = item.get("id")
    if name is None:
        return
    gpt_length(name, ID_LENGTH, f"{where}.id", "id_length")
    prefix = PREFIXES.get(form)
    if form == "message" and item.get("role") != "assistant":
        prefix = "msg"
    if prefix and not name.startswith(prefix):
        raise Refusal(
            "id_prefix",
            f"Invalid '{where}.id': '{name}'. Expected an ID that begins with '{prefix}'.",
            param=f"{where}.id",
            code="invalid_value",
        )
    if name in ids:
        raise Refusal(
            "id_unique",
            f"Duplicate item found with id {name}. Remove duplicate items from your input and try again.",
            param="input",
        )
    ids.add(name)


def _message(item: Json, where: str) -> None:
    role = item["role"]
    if role not in ("user", "assistant", "system", "developer"):
        raise Refusal(
            "role",
            f"Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
            param=f"{where}.role",
            code="invalid_value",
        )
    content = item["content"]
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Refusal(
            "content_null",
            f"Invalid type for '{where}.content': expected one of an array of objects or "
            f"string, but got {kind(content)} instead.",
            param=f"{where}.content",
            code="invalid_type",
        )
    gpt_array(content, f"{where}.content", 1, None, "empty_content")
    _parts(
        content,
        f"{where}.content",
        ("output_text", "refusal") if role == "assistant" else ("input_text", "input_image", "input_file"),
    )


def _parts(parts: list[Any], where: str, allowed: tuple[str, ...]) -> None:
    for index, part in enumerate(parts):
        spot = f"{where}[{index}]"
        form = part.get("type") if isinstance(part, dict) else None
        if form not in allowed:
            shown = ", ".join(repr(name) for name in allowed)
            raise Refusal(
                "part_type",
                f"Invalid value: '{form}'. Supported values are: {shown}.",
                param=f"{spot}.type",
                code="invalid_value",
            )
        needed, optional = fields.PARTS[str(form)]
        require_fields(part, needed, optional, spot, "responses")
        if "text" in needed and not isinstance(part["text"], str):
            raise Refusal(
                "content_null",
                f"Invalid type for '{spot}.text': expected a string, but got {kind(part['text'])} instead.",
                param=f"{spot}.text",
                code="invalid_type",
            )


def _pairing(items: list[Json], ledger: Ledger) -> None:
    waiting: dict[str, str] = {}
    done: set[str] = set()
    server: list[str] = []
    for item in items:
        form = item.get("type")
        if form in ("function_call", "custom_tool_call") or (form == "tool_search_call" and item.get("call_id")):
            if item["call_id"] in waiting or item["call_id"] in done:
                raise Refusal(
                    "id_unique",
                    f"Duplicate tool call found with call_id {item['call_id']}.",
                    param="input",
                    code="invalid_value",
                )
            waiting[item["call_id"]] = str(form)
        elif form in ("function_call_output", "custom_tool_call_output") or (
            form == "tool_search_output" and item.get("call_id")
        ):
            wanted = {
                "function_call_output": "function_call",
                "custom_tool_call_output": "custom_tool_call",
                "tool_search_output": "tool_search_call",
            }[str(form)]
            said = wanted.replace("_", " ").replace("custom tool call", "custom tool call")
            if item["call_id"] in done:
                raise Refusal(
                    "result_twice",
                    f"Duplicate output found for {said} with call_id {item['call_id']}.",
                    param="input",
                    code="invalid_value",
                )
            if waiting.get(item["call_id"]) != wanted:
                raise Refusal(
                    "result_unexpected",
                    f"No tool call found for {said} output with call_id {item['call_id']}.",
                    param="input",
                )
            del waiting[item["call_id"]]
            done.add(item["call_id"])
        elif form == "tool_search_call":
            if item.get("id") not in ledger.server_ids:
                raise Refusal(
                    "server_id",
                    f"tool_search_call '{item.get('id')}' with server execution was not issued by the API.",
                    param="input",
                    code="invalid_value",
                )
            server.append(item["id"])
        elif form == "tool_search_output":
            if item.get("id") not in ledger.server_ids or not server:
                raise Refusal(
                    "server_pair",
                    f"tool_search_output '{item.get('id')}' without its tool_search_call.",
                    param="input",
                    code="invalid_value",
                )
            server.pop()
        elif (
            form != "reasoning"
            and waiting
            and (form == "message" or "role" in item)
            and item.get("role") == "assistant"
        ):
            continue
    if waiting:
        name, form = next(iter(waiting.items()))
        said = {
            "function_call": "function call",
            "custom_tool_call": "custom tool call",
            "tool_search_call": "tool search call",
        }[form]
        raise Refusal("result_missing", f"No tool output found for {said} {name}.", param="input")
    if server:
        raise Refusal(
            "server_pair",
            f"tool_search_call '{server[-1]}' without its tool_search_output.",
            param="input",
            code="invalid_value",
        )


def _reasoning(items: list[Json], ledger: Ledger) -> None:
    earlier: set[str] = set()
    for index, item in enumerate(items):
        form = item.get("type") or "message"
        if form == "reasoning":
            name = item["id"]
            issued = ledger.reasoning.get(name)
            encrypted = item.get("encrypted_content")
            if encrypted is not None and (issued is None or encrypted != issued.encrypted):
                raise Refusal(
                    "encrypted",
                    f"The encrypted content {str(encrypted)[:12]}... could not be verified. "
                    "Reason: Encrypted content item_id did not match the target item id.",
                    code="invalid_encrypted_content",
                )
            if issued is None or (encrypted is None and name not in ledger.stored_items):
                raise _not_found(name)
            after = items[index + 1] if index + 1 < len(items) else {}
            follower = after.get("id") or ledger.item_of_call.get(str(after.get("call_id")))
            if issued.follower and follower != issued.follower:
                raise Refusal(
                    "reasoning_follower",
                    f"Item '{name}' of type 'reasoning' was provided without its required following item.",
                    param="input",
                )
            earlier.add(name)
        needed = ledger.needs_reasoning.get(str(item.get("id")))
        if needed and needed not in earlier:
            raise Refusal(
                "reasoning_missing",
                f"Item '{item['id']}' of type '{form}' was provided without its required 'reasoning' item: '{needed}'.",
                param="input",
            )


def _choice(body: Json, shelf: _Shelf) -> tuple[str | None, set[str] | None]:
    choice = body.get("tool_choice")
    if choice is None or choice in ("auto", "none"):
        return ("none" if choice == "none" else None), None
    if isinstance(choice, str):
        if choice != "required":
            raise Refusal(
                "tool_choice",
                f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'.",
                param="tool_choice",
                code="invalid_value",
            )
        if not shelf.any:
            raise Refusal(
                "choice_without_tools",
                "Tool choice 'required' must be specified with 'tools' parameter.",
                param="tool_choice",
            )
        return "any", None
    form = choice.get("type") if isinstance(choice, dict) else None
    names = {tool.name for tool in [*shelf.visible.values(), *shelf.deferred.values()]}
    if form in ("function", "custom"):
        require_fields(choice, ("type", "name"), (), "tool_choice", "responses")
        if not shelf.any:
            raise Refusal(
                "choice_without_tools",
                f"Tool choice '{form}' must be specified with 'tools' parameter.",
                param="tool_choice",
            )
        if choice["name"] not in names:
            raise unlisted(str(choice["name"]))
        return choice["name"], None
    if form == "allowed_tools":
        require_fields(choice, ("type", "mode", "tools"), (), "tool_choice", "responses")
        if not shelf.any:
            raise Refusal(
                "choice_without_tools",
                "Tool choice 'allowed_tools' must be specified with 'tools' parameter.",
                param="tool_choice",
            )
        allowed: set[str] = set()
        for entry in gpt_array(choice["tools"], "tool_choice.tools", 1):
            named = isinstance(entry, dict) and entry.get("type") in ("function", "custom")
            if named and entry.get("name") not in names:
                raise unlisted(str(entry.get("name")))
            allowed.add(str(entry.get("name") if named else entry.get("type")))
        return ("any" if choice["mode"] == "required" else None), allowed
    if form in fields.HOSTED_TOOLS:
        return None, None
    raise Refusal("tool_choice", f"Invalid value: '{form}'.", param="tool_choice.type", code="invalid_value")


def _turns(body: Json, items: list[Json]) -> list[Turn]:
    turns = Turns()
    if body.get("instructions"):
        turns.text("system", body["instructions"])
    for item in items:
        form = item.get("type") or "message"
        if form == "message":
            turns.text(item["role"], joined(item["content"]))
        elif form in ("function_call", "custom_tool_call"):
            turns.call(
                item["call_id"], item["name"], parsed(item.get("arguments", item.get("input"))), item.get("namespace")
            )
        elif form in ("function_call_output", "custom_tool_call_output"):
            turns.result(item["call_id"], joined(item["output"]))
        elif form == "tool_search_call":
            turns.call(str(item.get("call_id") or item.get("id")), "tool_search", item["arguments"])
        elif form == "tool_search_output":
            found = [str(inner.get("name")) for tool in item["tools"] for inner in (tool.get("tools") or [tool])]
            turns.result(str(item.get("call_id") or item.get("id")), canonical(item["tools"]), tuple(found))
    return turns.turns


def _segments(body: Json, items: list[Json]) -> list[Segment]:
    found: list[Segment] = []
    for tool in body.get("tools") or []:
        if tool.get("defer_loading"):
            continue
        shown = tool
        if tool.get("type") == "namespace":
            shown = {**tool, "tools": [inner for inner in tool["tools"] if not inner.get("defer_loading")]}
        found.append(Segment(canonical(shown)))
    if body.get("instructions"):
        found.append(Segment(canonical(["instructions", body["instructions"]])))
    for item in items:
        shown = {key: value for key, value in item.items() if key not in ("id", "status", "type") and value is not None}
        shown["type"] = item.get("type") or "message"
        found.append(Segment(canonical(shown)))
    return found
