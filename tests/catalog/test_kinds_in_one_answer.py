"""Tools and skills in one answer: what a skill takes from a tool, and what it does not."""

from collections.abc import Collection, Sequence

from toolsearch import Catalog, ToolDefinition, ToolSearch
from toolsearch.tools.definition import EntryKind

_SERVICES = ("mail", "chat", "files", "tickets", "calendar", "notes")
_TOOLS = [ToolDefinition(f"{service}__send", "Send a message to a person") for service in _SERVICES]
_WEATHER = ToolDefinition("weather__forecast", "Forecast the weather of a city for the coming days")
_REFUND = ToolDefinition(
    "shop__refund-customer",
    "Refund a customer's order: look it up, check the rules, pay the money back",
    server="shop",
    kind="skill",
)


def _found(
    definitions: Sequence[ToolDefinition],
    query: str,
    kinds: Collection[EntryKind] = ("tool", "skill"),
    limit: int = 5,
) -> list[tuple[str, float, str]]:
    with ToolSearch(Catalog(definitions), encoder="built-in") as engine:
        return [(each.name, each.score, each.confidence) for each in engine.search(query, kinds=kinds, limit=limit)]


def test_a_skill_beside_tools_moves_none_of_them_and_changes_none_of_their_scores() -> None:
    skills = [_REFUND, ToolDefinition("shop__write-letter", "How to write a letter to a person", kind="skill")]
    query = "send a message to a person, then forecast the weather of the city"

    alone = _found([*_TOOLS, _WEATHER], query, limit=7)
    beside = _found([*_TOOLS, _WEATHER, *skills], query, limit=9)

    assert len(alone) > 3
    assert [each for each in beside if not each[0].startswith("shop__")] == alone


def test_a_skill_is_first_if_the_request_is_for_it() -> None:
    found = _found([*_TOOLS, _WEATHER, _REFUND], "refund a customer's order")

    assert found[0][0] == "shop__refund-customer"
    assert found[0][2] == "high"


def test_a_skill_needs_a_better_match_beside_tools_than_alone() -> None:
    query = "look at this"  # a weak match

    alone = _found([*_TOOLS, _REFUND], query, kinds=["skill"])
    beside = _found([*_TOOLS, _REFUND], query)

    assert [name for name, *_ in alone] == ["shop__refund-customer"]
    assert [name for name, *_ in beside if name.startswith("shop__")] == []
    assert _found([_REFUND], query) == alone, "where there is no tool, a skill loses nothing"


def test_a_skill_that_is_found_by_name_or_pattern_loses_nothing_beside_tools() -> None:
    for query in ("select:shop__refund-customer", "refund customer", "/refund.*order/"):
        alone = _found([_REFUND], query)
        assert alone
        assert _found([*_TOOLS, _REFUND], query)[:1] == alone


def test_a_tool_precedes_a_skill_with_the_same_score() -> None:
    twin = ToolDefinition("a__send", "Send a message to a person", kind="skill")

    assert [name for name, *_ in _found([_TOOLS[0], twin], "select:a__send,mail__send")] == ["mail__send", "a__send"]
