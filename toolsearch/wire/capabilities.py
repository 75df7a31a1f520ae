"""Features that model APIs support, by format, model and cloud.

`FACTS` is the only table: each row has its source and the day on which it was checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast, get_args

from toolsearch.errors import BadSettingError
from toolsearch.wire.model_names import Cloud, ModelName, read_model_name

__all__ = [
    "FACTS",
    "Capabilities",
    "Cloud",
    "Endpoint",
    "Fact",
    "Models",
    "RevealMode",
    "RevealSetting",
    "capabilities_of",
]

RevealMode: TypeAlias = Literal["messages", "deferred", "fixed", "append"]
"""How found tools reach the model.

messages  as the provider's own additions in the midst of a conversation
deferred  all tools are in the list from the start, deferred; the answer to a search loads some
fixed     the answer holds the definitions, and one call tool runs the found tools
append    found tools are appended to the tool list
"""

RevealSetting: TypeAlias = Literal["auto", "messages", "deferred", "fixed", "append"]

Feature: TypeAlias = Literal[
    "tool additions in messages",
    "tool removals in messages",
    "deferred tools",
    "system messages in place",
    "thinking bound to what came before",
    "no forced tool choice",
    "choice of added tools",
    "answers held to a schema",
    "function tools only without reasoning",
    "at most so many tools",
    "at most so many deferred tools",
    "cached for so many seconds",
    "cache marks of whole requests",
]


@dataclass(frozen=True, slots=True)
class Models:
    """Models of *families* from the version *since* on, except those with a word of *but* in their names.

    Versions that do not exist yet count as well: makers rarely remove a feature.
    """

    families: frozenset[str]
    since: tuple[int, int]
    but: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of the table.

    models   models that the row is about; None: all, even unknown ones
    beta     name for the header ``anthropic-beta``, if one is needed
    value    the number in the feature's name
    source   where the fact comes from
    checked  the day on which it was looked up there
    """

    feature: Feature
    wire_formats: tuple[str, ...]
    models: tuple[Models, ...] | None
    clouds: tuple[Cloud, ...]
    source: str
    checked: str
    beta: str = ""
    value: int = 0


def _since(families: str, major: int, minor: int, *but: str) -> Models:
    return Models(frozenset(families.split()), (major, minor), frozenset(but))


_CLAUDE: Final = ("anthropic",)
_CHAT: Final = ("openai",)
_RESPONSES: Final = ("openai-responses",)
_ALL_CLAUDE = "opus sonnet haiku fable mythos"
_MEASURED = "live requests by the authors of pydantic-ai 2.68"
_CHECKED = "2026-11-22"
_CHANGING = (_since("opus", 4, 8), _since("fable mythos", 5, 0), _since("sonnet haiku", 5, 5))

FACTS: Final[tuple[Fact, ...]] = (
    Fact(
        "tool additions in messages",
        _CLAUDE,
        _CHANGING,
        ("",),
        f"Anthropic's list for the beta; {_MEASURED}: not Sonnet 5; stdapi-ai/stdapi.ai#104: not Bedrock",
        _CHECKED,
        beta="inline-tools-2026-09-15",
    ),
    Fact(
        "tool removals in messages",
        _CLAUDE,
        _CHANGING,
        ("",),
        "as for additions; pydantic/pydantic-ai#6985: a tool that was never defined is refused",
        _CHECKED,
        beta="inline-tools-2026-09-15",
    ),
    Fact(
        "tool additions in messages",
        _RESPONSES,
        (_since("gpt", 4, 1),),
        ("",),
        f"openai 3.54, response_input_item_param.py; {_MEASURED}: 13 models from gpt-4o-mini to gpt-5.6",
        _CHECKED,
    ),
    Fact(
        "deferred tools",
        _CLAUDE,
        (_since(_ALL_CLAUDE, 4, 5),),
        ("", "azure"),
        f"{_MEASURED}: from 4.5 on, without a beta header; earendil-works/pi, deferred-tools.test.ts: what else a "
        "result says follows as a text, since references stand alone in it",
        _CHECKED,
    ),
    Fact(
        "deferred tools",
        _CLAUDE,
        (_since(_ALL_CLAUDE, 4, 5),),
        ("bedrock", "vertex"),
        "BerriAI/litellm#20021: these two have a beta header of their own",
        _CHECKED,
        beta="tool-search-tool-2025-10-19",
    ),
    Fact(
        "deferred tools",
        _RESPONSES,
        (_since("gpt", 5, 4, "nano"),),
        ("", "azure"),
        "developers.openai.com, tool search: gpt-5.4 and later, and the page of gpt-5.4-nano; openai 3.54, "
        "response_input_item_param.py: an output of a search has no place for words, so a message follows it",
        _CHECKED,
    ),
    Fact(
        "system messages in place",
        _CLAUDE,
        _CHANGING,
        ("", "bedrock", "vertex"),
        "platform.claude.com, mid-conversation system messages: not Sonnet 5, which ignores them, and not at Azure",
        _CHECKED,
    ),
    Fact(
        "system messages in place",
        (*_CHAT, *_RESPONSES),
        None,
        ("", "azure"),
        "OpenAI's documentation; elsewhere they are refused (maximhq/bifrost#6245) or cost the cache "
        "(farion1231/cc-switch#7252)",
        _CHECKED,
    ),
    Fact(
        "thinking bound to what came before",
        _CLAUDE,
        (_since("fable", 5, 1), _since("mythos", 5, 2), _since("opus sonnet haiku", 5, 5)),
        ("", "azure", "bedrock", "vertex", "other"),
        f"platform.claude.com, thinking troubleshooting; {_MEASURED}: not Mythos 5.1",
        _CHECKED,
    ),
    Fact(
        "no forced tool choice",
        _CLAUDE,
        (_since("fable mythos", 5, 1), _since("opus sonnet", 5, 5)),
        ("", "azure", "bedrock", "vertex", "other"),
        f"vercel/ai#21364; {_MEASURED}: Fable 5 and Haiku 5.5 take it",
        _CHECKED,
    ),
    Fact(
        "choice of added tools",
        _RESPONSES,
        (_since("gpt", 5, 6),),
        ("",),
        f"{_MEASURED}: up to gpt-5.5, a tool choice that names a tool of an additional_tools item is refused",
        _CHECKED,
    ),
    Fact(
        "answers held to a schema",
        _CLAUDE,
        (_since(_ALL_CLAUDE, 4, 5),),
        ("", "azure", "bedrock", "vertex", "other"),
        "platform.claude.com, structured outputs",
        _CHECKED,
    ),
    Fact(
        "function tools only without reasoning",
        _CHAT,
        (_since("gpt", 5, 6),),
        ("", "azure"),
        "TheR1D/shell_gpt#801, embabel/embabel-agent#1895, danny-avila/LibreChat#14231",
        _CHECKED,
    ),
    Fact(
        "at most so many tools",
        (*_CHAT, *_RESPONSES),
        None,
        ("", "azure"),
        "learn.microsoft.com, Azure OpenAI quotas: 128 functions; OpenAI refuses more as array_above_max_length: "
        "zed-industries/zed#42393 (gpt-5), anomalyco/opencode#4909 (gpt-5.1). Nobody says that those in messages of "
        "Responses are not counted, so they are",
        "2026-11-23",
        value=128,
    ),
    Fact(
        "at most so many deferred tools",
        _CLAUDE,
        None,
        ("", "azure", "bedrock", "vertex", "other"),
        "platform.claude.com, tool search tool, limits: 10,000 tools in a catalog",
        _CHECKED,
        value=10_000,
    ),
    Fact(
        "cached for so many seconds",
        _CLAUDE,
        None,
        ("", "azure", "bedrock", "vertex", "other"),
        "platform.claude.com, prompt caching: 5 minutes after the last use",
        _CHECKED,
        value=300,
    ),
    Fact(
        "cached for so many seconds",
        (*_CHAT, *_RESPONSES),
        (_since("gpt", 5, 6),),
        ("", "azure"),
        "developers.openai.com, prompt caching: at least 30 minutes after the last use",
        _CHECKED,
        value=1_800,
    ),
    Fact(
        "cached for so many seconds",
        (*_CHAT, *_RESPONSES),
        (_since("gpt", 1, 0),),
        ("", "azure"),
        "developers.openai.com, prompt caching: up to 24 hours, by a setting of the organisation that nobody sees here",
        _CHECKED,
        value=86_400,
    ),
    Fact(
        "cache marks of whole requests",
        _CLAUDE,
        None,
        ("", "azure", "vertex"),
        "platform.claude.com, prompt caching, automatic caching: not Amazon Bedrock, which refuses the field "
        "(UKGovernmentBEIS/inspect_ai#3851)",
        _CHECKED,
    ),
)
"""The first row that matches an endpoint decides a feature."""

_LIST_ALONE: Final = (*_CHAT, "mcp")  # formats without a message for announcing tools
_UNKNOWN_CACHE_S = 3_600  # most servers drop a cached prompt within an hour; used where we know no figure


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a request goes. *model* "" means unknown.

    *native_tool_search* overrides our table for this endpoint: it says whether the endpoint takes deferred tools, and
    answers that refer to them or hold them.
    """

    wire_format: str
    model: str = ""
    cloud: Cloud = ""
    native_tool_search: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.model), str):
            raise BadSettingError(f"model must be a text, and '' for an unknown one; got {self.model!r:.80}")
        if self.cloud not in get_args(Cloud):
            known = ", ".join(map(repr, get_args(Cloud)))
            raise BadSettingError(f"no cloud {self.cloud!r:.80} is known; use one of {known}")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a model at one endpoint.

    modes             how tools can be revealed, best first; none of these is refused
    headers           the HTTP headers that a mode needs, by name
    removals          whether messages can withdraw tools
    forced_choice     whether a tool choice may force a call
    choice_of_added   whether a tool choice may name a tool that only a message has added
    system_in_place   whether a system message may stand in the midst of a conversation
    binds_thinking    whether thinking is bound to the tool list, the system text and all earlier messages
    tools_on_chat     whether Chat Completions takes function tools while the model reasons
    native_schema     whether answers can be held to a schema
    max_deferred      tools that one request may defer; None: no bound is known, or requests do not hold them
    max_tools         tools that one request may list, or add in messages; None: no bound is known
    cache_s           seconds since its last use for which a prompt may stay cached: the provider's promise, or the
                      longest possible time if it depends on a setting that we cannot see
    marks_requests    whether the mark for the cache may stand on a request itself: it counts for its last block
    facts             the rows of the table behind these values
    """

    modes: tuple[RevealMode, ...]
    headers: Mapping[RevealMode, Mapping[str, str]] = field(default_factory=dict[RevealMode, Mapping[str, str]])
    removals: bool = False
    forced_choice: bool = True
    choice_of_added: bool = False
    system_in_place: bool = False
    binds_thinking: bool = False
    tools_on_chat: bool = True
    native_schema: bool = False
    max_deferred: int | None = None
    max_tools: int | None = None
    cache_s: float = 300.0
    marks_requests: bool = False
    facts: tuple[Fact, ...] = ()


def capabilities_of(endpoint: Endpoint) -> Capabilities:
    """Look up the capabilities of *endpoint*. An unknown model or format gets only features that no model refuses."""
    name = read_model_name(endpoint.model)
    known: dict[Feature, Fact] = {}
    for fact in FACTS:
        if _is_true_of(fact, endpoint.wire_format, name, endpoint.cloud or name.cloud):
            known.setdefault(fact.feature, fact)
    cached, most = known.get("cached for so many seconds"), known.get("at most so many tools")
    most_deferred = known.get("at most so many deferred tools")
    return Capabilities(
        modes=_modes(endpoint, known),
        headers=_headers(known),
        removals="tool removals in messages" in known,
        forced_choice="no forced tool choice" not in known,
        choice_of_added="choice of added tools" in known,
        system_in_place="system messages in place" in known,
        binds_thinking="thinking bound to what came before" in known,
        tools_on_chat="function tools only without reasoning" not in known,
        native_schema=endpoint.wire_format != "anthropic" or "answers held to a schema" in known,
        max_deferred=most_deferred.value if most_deferred else None,
        max_tools=most.value if most else None,
        cache_s=cached.value if cached else _UNKNOWN_CACHE_S,
        marks_requests="cache marks of whole requests" in known,
        facts=tuple(known.values()),
    )


def _is_true_of(fact: Fact, wire_format: str, name: ModelName, cloud: Cloud) -> bool:
    if wire_format not in fact.wire_formats or cloud not in fact.clouds:
        return False
    return fact.models is None or any(_is_among(name, models) for models in fact.models)


def _is_among(name: ModelName, models: Models) -> bool:
    return name.family in models.families and name.version >= models.since and models.but.isdisjoint(name.words)


def _modes(endpoint: Endpoint, known: Mapping[Feature, Fact]) -> tuple[RevealMode, ...]:
    is_claude, told = endpoint.wire_format == "anthropic", endpoint.native_tool_search
    has_messages = "tool additions in messages" in known and told is not False
    has_deferred = "deferred tools" in known if told is None else told and endpoint.wire_format not in _LIST_ALONE
    may_append = "thinking bound to what came before" not in known
    always: tuple[RevealMode, ...] = ("fixed", "append") if is_claude else ("append", "fixed")
    return (
        *(("messages",) if has_messages else ()),
        *(("deferred",) if has_deferred else ()),
        *(mode for mode in always if may_append or mode != "append"),
    )


def _headers(known: Mapping[Feature, Fact]) -> dict[RevealMode, Mapping[str, str]]:
    needed: dict[RevealMode, Fact | None] = {
        "messages": known.get("tool additions in messages"),
        "deferred": known.get("deferred tools"),
    }
    return {mode: {"anthropic-beta": fact.beta} for mode, fact in needed.items() if fact is not None and fact.beta}
