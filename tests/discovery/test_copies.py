"""Tools that say the same and that a request does not tell apart count as one in an answer."""

from dataclasses import replace

import pytest

from tests.kit.session_tools import SEARCH, engine_of
from toolsearch import Catalog, Tool, ToolDefinition, ToolReference
from toolsearch.discovery.copies import grouped

URL = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
OPEN = ToolDefinition("firefox__open_page", "Open a web page in the browser.", URL, server="firefox")
COPY = replace(
    OPEN, name="chrome__chrome_openPage", description="Opens the web page in a browser. Fast.", server="chrome"
)
CLOSE = ToolDefinition("firefox__close_page", "Close a web page in the browser.", URL, server="firefox")


def names(*found: tuple[ToolDefinition, float], query: str = "open a page") -> list[list[str]]:
    catalog = Catalog(Tool(definition) for definition, _ in found)
    references = [ToolReference(definition.name, score, definition.description) for definition, score in found]
    return [[each.name for each in group] for group in grouped(query, references, catalog.find)]


def test_a_tool_of_another_server_with_the_same_name_sentence_and_parameters_stands_behind_the_better_one() -> None:
    assert names((OPEN, 0.9), (CLOSE, 0.9), (COPY, 0.89)) == [[OPEN.name, COPY.name], [CLOSE.name]]
    assert names((COPY, 0.9), (OPEN, 0.9)) == [[COPY.name, OPEN.name]]


def test_one_server_that_lists_a_tool_under_two_names_has_a_copy_too() -> None:
    twice = replace(OPEN, name="firefox__firefox_open_page")

    assert names((OPEN, 0.9), (twice, 0.9)) == [[OPEN.name, twice.name]]


@pytest.mark.parametrize(
    "other",
    [
        replace(COPY, name="chrome__open_tab"),
        replace(COPY, description="Open a web page in Chrome."),
        replace(COPY, description=""),
        replace(COPY, input_schema={"type": "object", "properties": {"tab": {}}, "required": ["tab"]}),
    ],
    ids=["another name", "another product", "no description", "other parameters"],
)
def test_what_says_anything_else_is_no_copy(other: ToolDefinition) -> None:
    assert names((OPEN, 0.9), (other, 0.9)) == [[OPEN.name], [other.name]]


def test_a_sentence_that_says_no_more_than_the_name_makes_no_copy() -> None:
    """A repository of code and one of images are two things."""
    code = ToolDefinition("codecommit__delete_repository", "Deletes a repository.", server="codecommit")
    images = replace(code, name="ecr__delete_repository", server="ecr")

    assert names((code, 0.9), (images, 0.9)) == [[code.name], [images.name]]


def test_what_the_request_tells_apart_or_names_is_no_copy() -> None:
    """From .9 to .85 are .46 in log odds; .2 are as near as tools that fit."""
    assert names((OPEN, 0.9), (COPY, 0.85)) == [[OPEN.name], [COPY.name]]
    assert names((OPEN, 1.0), (COPY, 0.999)) == [[OPEN.name], [COPY.name]]
    assert names((OPEN, 0.9), (COPY, 0.9), query="open a page in Chrome") == [[OPEN.name], [COPY.name]]
    assert names((OPEN, 0.9), (COPY, 0.9), query="open a page in Firefox") == [[OPEN.name, COPY.name]]


def test_an_answer_names_copies_in_a_line_loads_none_and_gives_their_places_to_others() -> None:
    copies = [replace(OPEN, name=f"{server}__open_page", server=server) for server in ("chrome", "edge", "safari")]
    session = engine_of(catalog=Catalog([OPEN, *copies, CLOSE]), limit=2).session("a")
    result = session.call_sync(SEARCH, {"query": "open a web page in the browser"})

    assert "none of these fits" not in result.text
    assert session.discovered == ["chrome__open_page"]
    assert "- firefox__close_page(url*)" in result.text
    assert result.text.endswith("\nMore like chrome__open_page: edge__open_page, firefox__open_page, safari__open_page")
    others = ["edge__open_page", "firefox__open_page", "safari__open_page", "firefox__close_page"]
    assert result.structured == {"tools": ["chrome__open_page"], "alsoFound": others}


@pytest.mark.parametrize("query", [f"select:{OPEN.name},{COPY.name}", "/open/"])
def test_who_sends_names_or_a_pattern_means_every_copy(query: str) -> None:
    result = engine_of(catalog=Catalog([OPEN, COPY, CLOSE])).session("a").call_sync(SEARCH, {"query": query})

    assert "More like" not in result.text
    assert all(f"- {definition.name}(url*)" in result.text for definition in (OPEN, COPY))


def test_a_search_by_a_program_gives_every_copy_a_place() -> None:
    engine = engine_of(catalog=Catalog([OPEN, COPY, CLOSE]))
    for search in (engine.search, engine.session("a").search):
        assert {each.name for each in search("open a web page in the browser")[:2]} == {COPY.name, OPEN.name}
