"""What the proxy tells of each request to a model, for the savings of the service."""

from typing import Any

import pytest

from tests.kit.proxy_talk import NEW, OLD, TOOLS, Talk, run, search
from tests.kit.strict_upstreams import Reply, Text, ToolCall
from toolsearch.catalog.catalog import Catalog

WAYS = [
    *(pytest.param(api, "other", OLD[api], id=f"{api}-fixed") for api in OLD),
    *(pytest.param(api, "", NEW[api], id=f"{api}-messages") for api in NEW),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("api", "cloud", "model"), WAYS)
async def test_a_round_is_one_request_more_whose_list_counts_and_holds_what_was_found(
    api: Any, cloud: Any, model: str, stream: bool
) -> None:
    call = run("mail__send_mail", text="a") if cloud else ToolCall("mail__send_mail", {"text": "a"})
    talk = Talk(api, [Reply([search()]), Reply([call]), Reply([Text("Sent.")])], cloud, model, stream)
    await talk.ask()
    await talk.ask()
    first, second = talk.done

    assert talk.is_well
    assert [done.held_back for done in talk.done] == [len(TOOLS) - 1] * 2  # all but Read
    assert [done.revealed for done in talk.done] == [1, 1]
    assert [done.costs.requests for done in talk.done] == [2, 1]
    assert first.costs.all_tools_tokens == second.costs.all_tools_tokens
    assert first.costs.written_tokens > 0 == second.costs.written_tokens
    found = second.costs.sent_tokens * 2 - first.costs.sent_tokens  # the first list had not found it yet
    assert 30 < found < 80
    assert second.costs.saved_tokens > 0


@pytest.mark.parametrize("api", OLD)
async def test_a_request_that_passes_unchanged_saves_nothing(api: Any) -> None:
    talk = Talk(api, [Reply([Text("Hello.")])])
    talk.client.tools = talk.client.tools[:3]
    await talk.ask()

    [done] = talk.done
    assert (done.held_back, done.costs.requests, done.costs.saved_tokens) == (0, 0, 0)


@pytest.mark.parametrize("api", OLD)
async def test_an_operators_few_tools_that_are_all_listed_save_nothing(api: Any) -> None:
    def book() -> str:
        """Book a flight."""
        return "booked"

    talk = Talk(api, [Reply([ToolCall("book", {})]), Reply([Text("Booked.")])], tools=Catalog([book]))
    talk.client.tools = talk.client.tools[:3]
    await talk.ask()

    [done] = talk.done
    assert (done.held_back, done.revealed, done.costs.requests) == (0, 0, 2)
    assert done.costs.sent_tokens == 2 * done.costs.all_tools_tokens
