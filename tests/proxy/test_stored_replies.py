"""Requests of Responses that continue a reply by its id, so that their history is at the model API."""

import json
from typing import Any

import pytest

from tests.kit.proxy_fuzz import strict_proxy
from tests.kit.proxy_talk import NEW, OLD, Talk, run, search
from tests.kit.strict_upstreams import Reply, Text, Thinking, ToolCall
from tests.kit.strict_upstreams.brain import Part
from toolsearch.catalog.catalog import Catalog
from toolsearch.wire.capabilities import Cloud

MAIL = "mail__send_mail"
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EVERY_MODE = pytest.mark.parametrize(
    ("cloud", "model"), [("other", OLD["responses"]), ("", NEW["responses"])], ids=["fixed", "messages"]
)


def stored_talk(
    *replies: Reply, cloud: Cloud = "other", model: str = "", stream: bool = False, tools: Catalog | None = None
) -> Talk:
    talk = Talk("responses", list(replies), cloud, model, stream, tools)
    talk.client.stored = True  # type: ignore[attr-defined]
    return talk


def called(cloud: Cloud) -> Part:
    return run(MAIL, text="hi") if cloud == "other" else ToolCall(MAIL, {"text": "hi"})


def said(talk: Talk) -> str:
    """The conversation of the last request as the API has stored it, with what it has replied."""
    return json.dumps(talk.fake.ledger.stored[talk.fake.requests[-1].reply["id"]])


def is_refused(talk: Talk) -> bool:
    """Whether the proxy has refused the last request, in words that tell what to do."""
    error = talk.last.get("error") or {}
    return error.get("code") == "previous_response_not_found" and "the whole conversation" in error.get("message", "")


@EVERY_MODE
@BOTH
async def test_a_conversation_goes_on_after_several_hidden_rounds(cloud: Cloud, model: str, stream: bool) -> None:
    """After calls of the client's, after words, and after a search that found the tool before: the list is the same."""
    replies = [
        Reply([Thinking("hm"), Text("Let me see."), search()]),
        Reply([called(cloud)]),
        Reply([search()]),
        Reply([Text("Sent.")]),
        Reply([called(cloud)]),
        Reply([Text("Sent again.")]),
    ]
    talk = stored_talk(*replies, cloud=cloud, model=model, stream=stream)
    for _ in range(2):
        await talk.ask("Do the thing number 7 in the shop")
        assert [call.name for call in talk.calls] == [MAIL]
        await talk.ask()

    assert talk.is_well
    assert all(body["tools"] == talk.bodies[0]["tools"] for body in talk.bodies)
    assert said(talk).count("Let me see.") == 1


@BOTH
async def test_calls_beside_a_clients_are_answered_by_the_next_request(stream: bool) -> None:
    ran: list[str] = []

    def told_time() -> str:
        """Tells the time."""
        ran.append("told")
        return "noon"

    replies = [
        Reply([search(), run("told_time"), ToolCall("Read", {"text": "a"})]),
        Reply([called("other")]),
        Reply([Text("Done.")]),
    ]
    talk = stored_talk(*replies, stream=stream, tools=Catalog([told_time]))
    await talk.ask()
    assert [call.name for call in talk.calls] == ["Read"]
    await talk.ask()
    assert [call.name for call in talk.calls] == [MAIL]
    await talk.ask()

    assert talk.is_well
    assert ran == ["told"]
    assert said(talk).count("noon") == 1
    assert said(talk).count("Send an e-mail to somebody") == 1


@BOTH
async def test_a_call_that_was_cut_off_is_answered_too(stream: bool) -> None:
    talk = stored_talk(Reply([Text("Well."), search()], stop="cut"), Reply([Text("Done.")]), stream=stream)
    await talk.ask()
    await talk.ask("And now?")

    assert talk.is_well
    assert "did not run" in said(talk)


@BOTH
async def test_branches_of_one_conversation_do_not_mix(stream: bool) -> None:
    """Two requests continue the same reply; only one of them searches."""
    replies = [
        Reply([search("shop__thing_003")]),
        Reply([Text("Well.")]),
        Reply([search()]),
        Reply([Text("One.")]),
        Reply([Text("Other.")]),
    ]
    talk = stored_talk(*replies, cloud="", model=NEW["responses"], stream=stream)
    await talk.ask()
    one, other = talk.client.fork(), talk.client.fork()
    for talk.client, words in ((one, "First"), (other, "Second")):
        await talk.ask(words)

    assert talk.is_well
    assert "Send an e-mail to somebody" not in said(talk)
    assert "First" not in said(talk)
    assert "Does the thing number 3" in said(talk)


async def test_a_reply_without_hidden_rounds_goes_on_at_any_proxy() -> None:
    """With all the client's tools, since this proxy does not know which of them were listed."""
    talk = stored_talk(Reply([called("other")]), Reply([Text("Done.")]))
    await talk.ask()
    talk.proxy = strict_proxy(talk.fake, "other", None)
    await talk.ask()

    assert talk.is_well
    assert len(talk.bodies[1]["tools"]) == len(talk.client.tools)


async def test_a_proxy_that_does_not_know_the_hidden_rounds_asks_for_the_whole_conversation() -> None:
    replies = [Reply([search()]), Reply([called("other")]), Reply([Text("Done.")])]
    talk = stored_talk(*replies, stream=True)
    await talk.ask()
    talk.proxy, talk.stream = strict_proxy(talk.fake, "other", None), False
    await talk.ask()

    assert is_refused(talk)
    assert len(talk.bodies) == 2


@pytest.mark.parametrize("change", [{"tools": []}, {"background": True}])
async def test_a_request_that_passes_unchanged_never_continues_another_conversation(change: dict[str, Any]) -> None:
    talk = stored_talk(Reply([search()]), Reply([Text("Well.")]), Reply([Text("Done.")]), stream=True)
    await talk.ask()
    talk.stream = False
    await talk.ask("And now?", **change)

    assert is_refused(talk)
    assert len(talk.bodies) == 2


async def test_a_request_that_passes_unchanged_leaves_no_call_of_the_proxys_unanswered() -> None:
    talk = stored_talk(Reply([Text("Well."), search()], stop="cut"), Reply([Text("Done.")]))
    await talk.ask()
    await talk.ask("And now?", tools=[])

    assert is_refused(talk)
    assert len(talk.bodies) == 1


async def test_the_client_reads_the_id_that_it_sent() -> None:
    talk = stored_talk(Reply([search()]), Reply([Text("Well.")]), Reply([Text("Done.")]), stream=True)
    await talk.ask()
    first = talk.last["id"]
    await talk.ask("And now?")

    assert talk.last["previous_response_id"] == first
    assert talk.bodies[2]["previous_response_id"] != first
