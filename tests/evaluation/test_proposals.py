"""Queries proposed from a catalog: their forms, that they point at one tool, and that they are the same each time."""

import pytest

from toolsearch.errors import BadSettingError
from toolsearch.evaluation.queries import propose_queries
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import namespaced

CONVERT = ToolDefinition(
    "time__convert_local_time",
    "Converts a time between two zones of the world. Daylight saving is known.",
    {"type": "object", "properties": {"source_zone": {}, "targetZone": {}, "clock": {}, "format": {}}},
    server="time",
)


def texts(*definitions: ToolDefinition, count: int = 100, seed: int = 0) -> list[str]:
    return [query.text for query in propose_queries(definitions, count, seed=seed)]


def test_a_tool_gives_a_query_of_each_form():
    proposed = propose_queries([CONVERT], 100)
    [typo] = [query.text for query in proposed if query.text.endswith(" time") and query.text != "convert time"]

    assert {query.text for query in proposed} == {
        "convert time",
        typo,
        "convert times",
        "two zones world",
        "time by source zone and target zone and clock",
    }
    assert sorted(typo) == sorted("convert time")
    assert all(query.relevant == {"time__convert_local_time"} and query.is_proposed for query in proposed)


def test_what_two_tools_would_give_is_proposed_for_neither():
    old = ToolDefinition("read_old_file", "Gives what a disk holds")
    new = ToolDefinition("read_new_files", "Gives what memory holds")

    assert sorted(texts(old, new)) == ["Gives disk holds", "Gives memory holds"]  # no typo of "read file" either


def test_every_tool_has_its_turn_before_one_has_a_second():
    tools = [ToolDefinition(f"paint_{thing}", f"Colours a {thing} from above") for thing in ("wall", "door", "roof")]

    proposed = propose_queries(tools, 4)

    assert len({name for query in proposed[:3] for name in query.relevant}) == 3
    assert len(proposed) == 4


def test_the_same_seed_gives_the_same_queries_in_any_order_of_the_tools():
    paint = ToolDefinition("paint_wall", "Colours what stands upright")

    assert texts(CONVERT, paint) == texts(paint, CONVERT)
    assert len({tuple(texts(CONVERT, paint, seed=seed)) for seed in range(10)}) > 1


@pytest.mark.parametrize(
    "definition",
    [
        ToolDefinition("median"),  # one word is the tool's whole name
        ToolDefinition(
            "f", input_schema={"type": "object", "properties": {"a lone \ud800 surrogate": {}}}
        ),  # unwritable
        ToolDefinition("_", ""),
        ToolDefinition("f", input_schema={"type": "object", "properties": []}),
    ],
)
def test_what_would_be_no_query_of_words_is_not_proposed(definition):
    assert texts(definition) == []


def test_a_server_that_names_its_tools_after_itself_is_not_asked_for():
    commit = ToolDefinition("git__git_show_commit", server="git")

    assert {"show commit", "show commits"} <= set(texts(commit))


def test_the_digits_of_a_name_that_was_cut_are_not_asked_for():
    name = namespaced("cloud", "create_a_private_endpoint_of_a_managed_network_for_each_region")

    assert len(name) == 64
    assert texts(ToolDefinition(name, "Makes endpoints in the region", server="cloud")) == ["Makes endpoints region"]


def test_a_plural_is_formed_as_english_does():
    def plurals(name: str) -> set[str]:
        return {text for text in texts(ToolDefinition(name)) if text.endswith("s")}

    assert plurals("add_entry") == {"add entries"}
    assert plurals("open_box") == {"open boxes"}
    assert plurals("set_key") == {"set keys"}


def test_no_query_at_all_cannot_be_asked_for():
    with pytest.raises(BadSettingError, match="at least 1, not 0"):
        propose_queries([CONVERT], 0)
