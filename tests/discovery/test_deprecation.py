"""A deprecated tool gives its place to the tool that it names in its stead, and nothing else moves."""

import pytest

from tests.kit.session_tools import SEARCH
from toolsearch import Catalog, PassThrough, SessionOptions, Tool, ToolDefinition, ToolReference, ToolSearch
from toolsearch.discovery.deprecation import is_deprecated, successors_first

OLD = ToolDefinition("drive__teamdrives_create", "Deprecated: Use `drives.create` instead.", server="drive")
NEW = ToolDefinition("drive__drives_create", "Creates a shared drive.", server="drive")
OTHER = ToolDefinition("drive__files_create", "Creates a file.", server="drive")


def order(*found: tuple[ToolDefinition, float]) -> list[tuple[str, float]]:
    catalog = Catalog(Tool(definition) for definition, _ in found)
    ranked = successors_first([ToolReference(each.name, score, "") for each, score in found], catalog.find)
    return [(each.name, each.score) for each in ranked]


def test_a_deprecated_tool_changes_places_with_the_tool_that_it_names() -> None:
    assert order((OLD, 0.9), (OTHER, 0.8), (NEW, 0.7)) == [(NEW.name, 0.9), (OTHER.name, 0.8), (OLD.name, 0.7)]
    assert order((NEW, 0.9), (OLD, 0.8)) == [(NEW.name, 0.9), (OLD.name, 0.8)]


def test_nothing_moves_without_a_successor_or_if_the_tool_was_asked_for_by_name() -> None:
    elsewhere = ToolDefinition("disk__drives_create", "Creates a drive.", server="disk")
    for found in ([(OLD, 0.9), (OTHER, 0.8)], [(OLD, 0.9), (elsewhere, 0.8)], [(OLD, 1.0), (NEW, 0.8)]):
        assert order(*found) == [(definition.name, score) for definition, score in found]


def test_the_successor_is_the_tool_that_is_named_first_even_if_another_is_found_before_it() -> None:
    old = ToolDefinition(OLD.name, "Deprecated: use drives.create instead of files.create.", server="drive")
    longer = ToolDefinition("drive__files_create_all", server="drive")
    names = [NEW.name, OTHER.name, OLD.name]
    assert order((old, 0.9), (OTHER, 0.8), (NEW, 0.7)) == list(zip(names, (0.9, 0.8, 0.7), strict=True))
    assert order((NEW, 0.9), (old, 0.8), (OTHER, 0.7)) == [(NEW.name, 0.9), (OLD.name, 0.8), (OTHER.name, 0.7)]
    old = ToolDefinition(OLD.name, "Deprecated: use files.createAll.", server="drive")
    assert order((old, 0.9), (OTHER, 0.8), (longer, 0.7))[0] == (longer.name, 0.9)


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Deprecated.\n\nAdd a member.", True),
        ("[DEPRECATED] Add a member.", True),
        ("Adds a member.\r\n\r\n> Deprecated\r\n\r\nUse another.", True),
        ("Deprecated - use another.", True),
        ("Lists fields.\nDeprecated fields are left out.", False),
        ("Compare two commits\n\n**Deprecated**: Use another.", True),
        ("This action is deprecated. Links an instance.", True),
        ("The operation is on the path to deprecation.", True),
        ("Check if packages are deprecated", False),
        ("Cancels the deprecation of an image.", False),
        ("Reads an image, even if this image is deprecated.", False),
        ("Imports an event. Deprecated behavior: its type is changed.", False),
    ],
)
def test_only_what_a_tool_says_of_itself_makes_it_deprecated(description: str, expected: bool) -> None:
    assert is_deprecated(ToolDefinition("a", description)) is expected
    assert is_deprecated(ToolDefinition("a", annotations={"deprecated": True}))


def test_a_model_is_shown_the_successor_and_can_still_load_the_deprecated_tool() -> None:
    old = ToolDefinition(OLD.name, f"{OLD.description} Creates a team drive.", server="drive")
    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    engine = ToolSearch([Tool(old), Tool(NEW), Tool(OTHER)], encoder=None, options=options)
    session = engine.session("a")

    assert engine.search("create a team drive")[0].name == OLD.name
    session.call_sync(SEARCH, {"query": "create a team drive"})
    assert session.discovered[0] == NEW.name
    session.call_sync(SEARCH, {"query": f"select:{OLD.name}"})
    assert OLD.name in session.discovered
