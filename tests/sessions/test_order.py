"""Several searches in one reply: what they find is listed in the order of the calls, however long each takes."""

import threading

from toolsearch import Catalog, ToolSearch


async def test_searches_of_one_reply_list_what_they_find_in_the_order_of_the_calls(monkeypatch):
    engine = ToolSearch(Catalog.from_module("statistics"))
    second_began = threading.Event()
    search = engine.search

    def first_comes_last_if_it_can(query, **options):
        if "mode" in query:
            second_began.wait(0.2)
        else:
            second_began.set()
        return search(query, **options)

    monkeypatch.setattr(engine, "search", first_comes_last_if_it_can)
    session = engine.session("one")

    await session.execute(
        [
            {"name": "toolSearchTool", "arguments": {"query": "select:statistics__mode"}},
            {"name": "toolSearchTool", "arguments": {"query": "select:statistics__median"}},
        ]
    )

    assert session.discovered == ["statistics__mode", "statistics__median"]
