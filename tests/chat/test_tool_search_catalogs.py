"""Tool search over tools that change: what is indexed again, and what a turn goes on with."""

import asyncio
import gc
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from tests.kit.scripted_model import ScriptedModel, calls, says
from tests.kit.tool_search import (
    FUNCTIONS,
    OPTIONS,
    SEARCH,
    TOOLS,
    ask,
    asked,
    names,
    results,
    search,
    searcher,
)
from toolsearch import (
    Catalog,
    Tool,
    ToolDefinition,
    ToolSearch,
)
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.errors import BadSettingError
from toolsearch.tools.function_tools import tool_from_function
from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.encoders.opening import AUTO
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.semantic import FIELDS


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the tools in each engine that was made."""
    made: list[list[str]] = []

    def init(self: ToolSearch, catalog: Catalog, **more: Any) -> None:
        made.append(catalog.names())
        original(self, catalog, **more)

    original = ToolSearch.__init__
    monkeypatch.setattr(ToolSearch, "__init__", init)
    return made


async def test_the_same_tools_are_indexed_once_for_all_sessions_in_any_order(indexed: list[list[str]]) -> None:
    advisor, model = searcher(), ScriptedModel(*[says("Done.")] * 3)

    await ask(advisor, model, asked(conversation="a"))
    await ask(advisor, model, asked(conversation="b"))
    await ask(advisor, model, asked(conversation="a", tools=TOOLS[::-1]))

    assert len(indexed) == 1


async def test_concurrent_first_requests_index_once(indexed: list[list[str]]) -> None:
    advisor = searcher()
    requests = [asked(conversation=f"c{number}") for number in range(8)]

    await asyncio.gather(*(ask(advisor, ScriptedModel(says("Done.")), request) for request in requests))

    assert len(indexed) == 1


async def test_changed_tools_of_a_lone_session_update_its_index(indexed: list[list[str]]) -> None:
    renamed = Tool(replace(TOOLS[0].definition, description="Post a parcel."), TOOLS[0].callback)
    added = Tool(ToolDefinition("book_flight", "Book a flight."))
    advisor = searcher()
    model = ScriptedModel(
        search("email", "events"), says("1"), search("parcel", "flight", "calendar events"), says("2")
    )

    await ask(advisor, model, asked())
    gc.collect()  # the first turn is over once nobody holds it
    await ask(advisor, model, asked(tools=(renamed, *TOOLS[2:], added)))

    assert len(indexed) == 1
    listed = [SEARCH, "send_mail", "list_events"]  # what was sent stays as long as it may be cached
    assert names(model)[2:] == [listed, [*listed, "book_flight"]]
    assert model.prompts[2].options.tools[1] is renamed


async def test_changed_tools_of_one_session_leave_the_index_of_the_others_alone(indexed: list[list[str]]) -> None:
    advisor = searcher()
    model = ScriptedModel(says("1"), says("2"), says("3"), search("email"), says("4"))

    await ask(advisor, model, asked(conversation="a"))
    await ask(advisor, model, asked(conversation="b"))
    await ask(advisor, model, asked(conversation="a", tools=TOOLS[1:]))
    await ask(advisor, model, asked(conversation="b"))

    assert list(map(len, indexed)) == [4, 3]
    assert names(model)[-1] == [SEARCH, "send_mail"]


async def test_tools_that_change_during_a_turn_of_the_same_session_leave_that_turn_alone() -> None:
    advisor = searcher()

    async def meddle() -> str:
        """Ask with fewer tools, in the same session."""
        await ask(advisor, ScriptedModel(says("Hi.")), asked(tools=TOOLS[1:]))
        return "done"

    model = ScriptedModel(calls(("meddle", "{}")), search("email"), calls(("meddle", "{}")), says("1"))
    await ask(advisor, model, asked(tools=(*TOOLS, tool_from_function(meddle))))

    assert names(model)[2] == [SEARCH, "send_mail"]  # which the other request did not bring along
    assert results(model, 3)[0].text == "done"


async def test_equal_texts_of_different_sets_of_tools_are_embedded_once() -> None:
    class Counting(HashingEncoder):
        embedded = 0

        def encode_documents(self, texts: Any) -> Any:
            Counting.embedded += len(texts)
            return super().encode_documents(texts)

    advisor, model = searcher(encoder=Counting(), requests=False), ScriptedModel(says("1"), says("2"))

    await ask(advisor, model, asked(conversation="a"))
    await ask(advisor, model, asked(conversation="b", tools=TOOLS[1:]))

    assert Counting.embedded == FIELDS * len(TOOLS)  # no two of the fields are equal


async def test_a_catalog_that_changes_in_the_middle_of_a_turn_is_followed(run: Any) -> None:
    catalog = Catalog.from_functions(FUNCTIONS)

    def deploy() -> str:
        """Deploy another version."""
        catalog.remove("send_mail")
        catalog.replace(ToolDefinition("list_events", "List meetings."))
        catalog.add(ToolDefinition("book_flight", "Book a flight."))
        return "deployed"

    advisor = ToolSearchAdvisor(ToolSearch(catalog, encoder=None, options=OPTIONS))
    model = ScriptedModel(
        search("select:send_mail,list_events"),
        calls(("deploy", "{}")),
        calls(("send_mail", '{"to": "Ann"}'), (SEARCH, '{"query": "flight"}')),
        says("Done."),
    )

    await run(advisor, model, asked(tools=(tool_from_function(deploy),)))

    listed = [SEARCH, "deploy", "send_mail", "list_events"]
    assert names(model)[1:] == [listed, listed, [*listed, "book_flight"]]
    assert model.prompts[2].options.tools[3].definition.description == "List meetings."
    assert [result.is_error for result in results(model, 3)] == [True, False]


# An index of one's own


class Backwards:
    """Finds the tools whose name holds the query, last name first."""

    rankings = ("keyword",)
    made: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        self.documents: dict[str, ToolDocument] = {}
        self.made.append(self)

    def resolve_strategy(self, _: str) -> str:
        return "keyword"

    def names(self) -> list[str]:
        return list(self.documents)

    def update(self, add: Iterable[ToolDocument] = (), remove: Iterable[str] = ()) -> None:
        for name in remove:
            del self.documents[name]
        self.documents.update({document.name: document for document in add})

    def search(self, query: str, *, limit: int, **_: Any) -> list[Hit]:
        fitting = sorted((name for name in self.documents if query in name), reverse=True)
        return [Hit(name, 1 - place / 100, confidence="high") for place, name in enumerate(fitting[:limit])]


async def test_an_index_of_ones_own_is_made_for_each_set_of_tools(run: Any) -> None:
    Backwards.made.clear()
    advisor = searcher(index=Backwards, encoder=AUTO)
    model = ScriptedModel(search("i"), says("1"), says("2"), search("time"), says("3"))

    await run(advisor, model, asked())
    await run(advisor, model, asked(conversation="b"))
    await run(advisor, model, asked(conversation="c", tools=TOOLS[2:]))

    assert results(model, 1)[0].structured == {
        "tools": ["send_mail"],
        "alsoFound": ["pay_bill", "list_events"],  # at most two that are only related
    }
    assert names(model)[4] == [SEARCH, "convert_time"]
    assert [sorted(index.documents) for index in Backwards.made] == [
        ["convert_time", "list_events", "pay_bill", "send_mail"],
        ["convert_time", "pay_bill"],
    ]


def test_an_index_is_not_for_an_advisor_of_an_engine_nor_one_that_serves_all() -> None:
    with pytest.raises(BadSettingError, match="reader, index, requests"):
        ToolSearchAdvisor(ToolSearch(list(TOOLS), encoder=None), index=Backwards)
    with pytest.raises(BadSettingError, match="not an index; got a Backwards"):
        searcher(index=Backwards())
