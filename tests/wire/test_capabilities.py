"""The table of what model APIs take: which rows are true of which model, at which cloud."""

from datetime import date
from typing import Any

import pytest

from tests.kit.loopback import models as published
from toolsearch.errors import BadSettingError
from toolsearch.wire.capabilities import FACTS, Capabilities, Cloud, Endpoint, capabilities_of
from toolsearch.wire.model_names import ModelName, read_model_name

INLINE = {"anthropic-beta": "inline-tools-2026-09-15"}
SEARCH = {"anthropic-beta": "tool-search-tool-2025-10-19"}


def claude(model: str, cloud: Cloud = "") -> Capabilities:
    return capabilities_of(Endpoint("anthropic", model, cloud))


def gpt(model: str, cloud: Cloud = "", wire_format: str = "openai-responses") -> Capabilities:
    return capabilities_of(Endpoint(wire_format, model, cloud))


@pytest.mark.parametrize(
    ("model", "read"),
    [
        ("claude-opus-4-8", ModelName("opus", (4, 8))),
        ("claude-opus-4-5-20251101", ModelName("opus", (4, 5), ("20251101",))),
        ("claude-opus-4-20250514", ModelName("opus", (4, 0))),
        ("claude-sonnet-5-5-20260901", ModelName("sonnet", (5, 5), ("20260901",))),
        ("claude-opus-4-8@20260601", ModelName("opus", (4, 8), ("20260601",), "vertex")),
        ("publishers/anthropic/models/claude-haiku-4-5", ModelName("haiku", (4, 5), (), "vertex")),
        ("eu.anthropic.claude-opus-4-5-20251101-v1:0", ModelName("opus", (4, 5), ("20251101", "v1:0"), "bedrock")),
        ("anthropic/claude-opus-5", ModelName("opus", (5, 0), (), "other")),
        ("claude-3-5-sonnet-20241022", ModelName("", (5, 0), ("20241022",))),
        ("not-claude-opus-5", ModelName()),
        ("gpt-5.6-sol", ModelName("gpt", (5, 6), ("sol",))),
        ("GPT-5.4-nano-2026-03-05", ModelName("gpt", (5, 4), ("nano", "2026", "03", "05"))),
        ("gpt-4o-mini", ModelName("gpt", (4, 1), ("mini",))),
        ("gpt-4-turbo", ModelName("gpt", (4, 0), ("turbo",))),
        ("gpt-4-0613", ModelName("gpt", (4, 0), ("0613",))),
        ("ft:gpt-4o-mini-2024-07-18:team::1", ModelName("gpt", (4, 1), ("mini", "2024", "07", "18"))),
        ("gpt-oss-120b", ModelName("gpt", (0, 0), ("120b",))),
        ("gpt", ModelName()),
        ("o4-mini", ModelName()),
        ("", ModelName()),
    ],
)
def test_a_models_name_tells_its_family_version_and_cloud(model: str, read: ModelName) -> None:
    assert read_model_name(model) == read


@pytest.mark.parametrize(
    "model",
    [
        *["claude-fable-5", "claude-fable-5-2", "claude-mythos-5-1", "claude-opus-4-8", "claude-opus-5"],
        *["claude-opus-5-5", "claude-sonnet-5-5-20260901", "claude-haiku-5-5", "claude-opus-6"],
    ],
)
def test_new_claude_models_take_tools_in_messages(model: str) -> None:
    known = claude(model)

    assert known.modes[:3] == ("messages", "deferred", "fixed")
    assert known.headers == {"messages": INLINE}
    assert known.removals
    assert known.system_in_place


@pytest.mark.parametrize(
    "model", ["claude-sonnet-5", "claude-sonnet-4-5-20250929", "claude-opus-4-7", "claude-haiku-5"]
)
def test_claude_models_from_4_5_on_take_deferred_tools_without_a_header(model: str) -> None:
    known = claude(model)

    assert known.modes == ("deferred", "fixed", "append")
    assert (known.headers, known.removals, known.system_in_place) == ({}, False, False)


@pytest.mark.parametrize("model", ["", "claude-3-5-sonnet-20241022", "claude-opus-4-1", "claude-mythos-preview", "glm"])
def test_a_claude_model_that_is_old_or_not_known_gets_what_no_model_refuses(model: str) -> None:
    known = claude(model)

    assert known.modes == ("fixed", "append")
    assert (known.headers, known.system_in_place, known.native_schema) == ({}, False, False)


@pytest.mark.parametrize(
    ("model", "cloud", "modes", "headers"),
    [
        ("claude-opus-5", "azure", ("deferred", "fixed", "append"), {}),
        ("claude-opus-5", "bedrock", ("deferred", "fixed", "append"), {"deferred": SEARCH}),
        ("us.anthropic.claude-opus-5-v1:0", "", ("deferred", "fixed", "append"), {"deferred": SEARCH}),
        ("claude-opus-5@20260401", "", ("deferred", "fixed", "append"), {"deferred": SEARCH}),
        ("claude-opus-5", "vertex", ("deferred", "fixed", "append"), {"deferred": SEARCH}),
        ("claude-opus-5", "other", ("fixed", "append"), {}),
        ("anthropic/claude-opus-5", "", ("fixed", "append"), {}),
        ("claude-fable-5-1", "other", ("fixed",), {}),
    ],
)
def test_a_cloud_takes_what_is_known_of_it(model: str, cloud: Cloud, modes: Any, headers: Any) -> None:
    known = claude(model, cloud)

    assert (known.modes, known.headers) == (modes, headers)


def test_only_anthropics_requests_hold_what_is_deferred_so_only_they_are_bounded() -> None:
    bounds = [capabilities_of(endpoint).max_deferred for endpoint in (
        Endpoint("anthropic", "claude-haiku-4-5"), Endpoint("anthropic", "glm", "other", native_tool_search=True),
        Endpoint("openai-responses", "gpt-5.4"), Endpoint("openai", "gpt-5.4"),
    )]  # fmt: skip

    assert bounds == [10_000, 10_000, None, None]


def test_system_messages_stay_in_place_at_the_clouds_that_document_it() -> None:
    clouds: list[Cloud] = ["", "bedrock", "vertex", "azure", "other"]
    in_place = [claude("claude-opus-5", cloud).system_in_place for cloud in clouds]

    assert in_place == [True, True, True, False, False]
    for wire_format in ("openai", "openai-responses"):
        assert [gpt("any", cloud, wire_format).system_in_place for cloud in ("", "azure", "other")] == [
            True, True, False,
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "binds", "forced"),
    [
        ("claude-fable-5", False, True),
        ("claude-fable-5-1", True, False),
        ("claude-fable-5-2", True, False),
        ("claude-mythos-5", False, True),
        ("claude-mythos-5-1", False, False),
        ("claude-mythos-5-2", True, False),
        ("claude-opus-5", False, True),
        ("claude-opus-5-5", True, False),
        ("claude-sonnet-5", False, True),
        ("claude-sonnet-5-5", True, False),
        ("claude-haiku-5-5", True, True),
        ("claude-opus-6", True, False),
        ("", False, True),
    ],
)
def test_models_that_bind_their_thinking_and_those_that_refuse_to_be_forced(
    model: str, binds: bool, forced: bool
) -> None:
    """A list that grows is refused where thinking is bound to it."""
    for cloud in ("", "azure", "bedrock", "vertex", "other"):
        known = claude(model, cloud)
        assert (known.binds_thinking, known.forced_choice, "append" in known.modes) == (binds, forced, not binds)


@pytest.mark.parametrize(
    ("model", "cloud", "modes"),
    [
        ("gpt-4o-mini", "", ("messages", "append", "fixed")),
        ("ft:gpt-4o-mini:team::1", "", ("messages", "append", "fixed")),
        ("gpt-5.4-nano", "", ("messages", "append", "fixed")),
        ("gpt-5.4", "", ("messages", "deferred", "append", "fixed")),
        ("gpt-6-astra", "", ("messages", "deferred", "append", "fixed")),
        ("gpt-5.4", "azure", ("deferred", "append", "fixed")),
        ("gpt-5.4", "other", ("append", "fixed")),
        ("openai/gpt-5.4", "", ("append", "fixed")),
        ("gpt-4-turbo", "", ("append", "fixed")),
        ("o4-mini", "", ("append", "fixed")),
        ("", "", ("append", "fixed")),
    ],
)
def test_responses_takes_tools_in_items_from_openai_alone(model: str, cloud: Cloud, modes: Any) -> None:
    known = gpt(model, cloud)

    assert (known.modes, known.headers, known.removals) == (modes, {}, False)


def test_chat_completions_has_no_way_but_the_list_and_new_models_take_it_only_without_reasoning() -> None:
    models = ["", "gpt-5.5", "gpt-5.6-sol", "gpt-6-luna"]

    assert {gpt(model, wire_format="openai").modes for model in models} == {("append", "fixed")}
    assert [gpt(model, wire_format="openai").tools_on_chat for model in models] == [True, True, False, False]
    assert gpt("gpt-5.6", "azure", "openai").tools_on_chat is False
    assert gpt("gpt-5.6", "other", "openai").tools_on_chat is True
    assert gpt("gpt-5.6").tools_on_chat is True


def test_a_choice_may_name_an_added_tool_from_gpt_5_6_on() -> None:
    assert [gpt(model).choice_of_added for model in ("gpt-5.5", "gpt-5.6-sol", "gpt-6-luna", "")] == [
        False, True, True, False,
    ]  # fmt: skip
    assert claude("claude-opus-5").choice_of_added is False


def test_how_long_a_prompt_stays_cached() -> None:
    """Figures that providers promise, the longest where a setting decides that nobody sees, and an hour elsewhere."""
    assert (claude("").cache_s, claude("claude-opus-5", "bedrock").cache_s) == (300, 300)
    assert [gpt(model).cache_s for model in ("gpt-5.6", "gpt-6-sol", "gpt-5.5", "gpt-4o")] == [
        1_800, 1_800, 86_400, 86_400,
    ]  # fmt: skip
    assert (gpt("").cache_s, gpt("gpt-5.6", "other").cache_s) == (3_600, 3_600)


def test_openai_lists_at_most_128_functions() -> None:
    assert [gpt("gpt-5", wire_format=each).max_tools for each in ("openai", "openai-responses")] == [128, 128]
    assert (gpt("gpt-5", "other").max_tools, claude("claude-opus-5").max_tools) == (None, None)


def test_who_knows_an_endpoint_better_decides_on_native_search() -> None:
    def modes(model: str, told: bool, cloud: Cloud = "") -> Any:
        return capabilities_of(Endpoint("anthropic", model, cloud, told)).modes

    assert modes("glm", True, "other") == ("deferred", "fixed", "append")
    assert modes("claude-opus-5", False) == ("fixed", "append")
    assert modes("claude-opus-5", True)[:2] == ("messages", "deferred")
    assert capabilities_of(Endpoint("openai", "m", "other", True)).modes == ("append", "fixed")


CLAUDES = [
    *["claude-fable-5", "claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5", "claude-mythos-5-1"],
    *["claude-mythos-5-2", "claude-opus-4-1", "claude-opus-4-5", "claude-opus-4-6", "claude-opus-4-7"],
    *["claude-opus-4-8", "claude-opus-5", "claude-opus-5-5", "claude-sonnet-4-5", "claude-sonnet-4-6"],
    *["claude-sonnet-5", "claude-sonnet-5-5", "claude-haiku-4-5", "claude-haiku-5-5"],
]
GPTS = [
    "gpt-4o",
    "gpt-4o-mini",
    "gpt-4.1",
    "gpt-5",
    "gpt-5.3-codex",
    "gpt-5.4",
    "gpt-5.4-nano",
    "gpt-5.5",
    "gpt-5.6-sol",
]


def test_the_table_agrees_with_the_lists_by_which_the_tests_refuse_requests() -> None:
    """They were written apart from each other."""
    for model in CLAUDES:
        known = claude(model)
        assert (
            "messages" in known.modes, "deferred" in known.modes, known.binds_thinking, known.forced_choice,
        ) == (
            published.takes_tool_changes(model), published.takes_tool_references(model),
            published.binds_thinking(model), published.takes_forced_choice(model),
        ), model  # fmt: skip
    for model in GPTS:
        known = gpt(model)
        assert ("messages" in known.modes, "deferred" in known.modes, known.choice_of_added) == (
            published.takes_additional_tools(model), published.takes_tool_search(model),
            published.takes_choice_of_additional_tools(model),
        ), model  # fmt: skip
        assert gpt(model, wire_format="openai").tools_on_chat is published.takes_functions_on_chat(model, None)


def test_a_format_that_is_not_known_is_appended_to() -> None:
    assert capabilities_of(Endpoint("scripted", "claude-opus-5")).modes == ("append", "fixed")


def test_each_row_has_its_source_and_its_day_and_is_true_of_something() -> None:
    for fact in FACTS:
        assert len(fact.source) > 20
        assert date(2026, 11, 1) <= date.fromisoformat(fact.checked)
        assert fact.clouds
    assert len(set(FACTS)) == len(FACTS)


def test_what_is_known_of_an_endpoint_names_its_rows() -> None:
    sources = [fact.source for fact in claude("claude-opus-4-5", "bedrock").facts if fact.feature == "deferred tools"]

    assert sources == ["BerriAI/litellm#20021: these two have a beta header of their own"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"model": None}, "model must be a text"),
        ({"model": 5}, "model must be a text"),
        ({"cloud": "gcp"}, "no cloud 'gcp'"),
    ],
)
def test_an_endpoint_that_cannot_be_is_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadSettingError, match=complaint):
        Endpoint("anthropic", **given)
