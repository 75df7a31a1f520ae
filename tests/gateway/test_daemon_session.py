"""How a client's session goes on when the process that served it has ended: what is said again, and to whom."""

import json
from typing import Any

import pytest

from toolsearch.gateway.daemon.session import ClientSession


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


def says(session: ClientSession, **message: Any) -> dict[str, Any] | None:
    """What the gateway gets of a message of the client."""
    passed = session.passed_to_gateway(line(**message))
    return None if passed is None else json.loads(passed)


def hears(session: ClientSession, **message: Any) -> dict[str, Any] | None:
    """What the client gets of a message of the gateway."""
    passed = session.passed_to_client(line(**message))
    return None if passed is None else json.loads(passed)


@pytest.fixture
def shaken() -> ClientSession:
    """A client of the older protocol that has shaken hands."""
    session = ClientSession()
    says(session, id=0, method="initialize", params={"clientInfo": {"name": "me"}})
    hears(session, id=0, result={})
    says(session, method="notifications/initialized")
    return session


def test_the_handshake_the_log_level_and_subscriptions_are_said_again_and_nothing_else(shaken: ClientSession) -> None:
    says(shaken, id=1, method="logging/setLevel", params={"level": "info"})
    says(shaken, id=2, method="logging/setLevel", params={"level": "debug"})
    says(shaken, id=3, method="resources/subscribe", params={"uri": "a:"})
    says(shaken, id=4, method="resources/subscribe", params={"uri": "b:"})
    says(shaken, id=5, method="resources/unsubscribe", params={"uri": "a:"})
    says(shaken, id=6, method="tools/call", params={"name": "x"})
    for number in range(1, 7):
        hears(shaken, id=number, result={})
    assert shaken.lost() == []

    replayed = shaken.replay()
    assert [(each["method"], each.get("params", {})) for each in replayed] == [
        ("initialize", {"clientInfo": {"name": "me"}}),
        ("notifications/initialized", {}),
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "b:"}),
    ]
    for each in replayed:
        if "id" in each:
            assert hears(shaken, id=each["id"], result={}) is None


def test_requests_without_an_answer_get_an_error_once_and_are_not_sent_again(shaken: ClientSession) -> None:
    says(shaken, id=1, method="tools/call", params={"name": "x"})
    says(shaken, id="1", method="resources/read", params={"uri": "a:"})
    says(shaken, id=2, method="tools/call", params={"name": "y"})
    hears(shaken, id=2, result={})

    called, read = shaken.lost()
    assert called["id"] == 1
    assert called["result"]["isError"] is True
    assert "may have run" in called["result"]["content"][0]["text"]
    assert read["id"] == "1"
    assert "may have run" in read["error"]["message"]
    assert shaken.lost() == []
    assert [each["method"] for each in shaken.replay()] == ["initialize", "notifications/initialized"]


def test_a_cancelled_request_gets_no_error(shaken: ClientSession) -> None:
    says(shaken, id=1, method="tools/call", params={"name": "x"})
    says(shaken, method="notifications/cancelled", params={"requestId": 1})

    assert shaken.lost() == []


def test_a_handshake_without_an_answer_is_sent_again_under_its_own_id() -> None:
    session = ClientSession()
    says(session, id=0, method="initialize")

    assert session.lost() == []
    assert [each["id"] for each in session.replay()] == [0]
    assert hears(session, id=0, result={"protocolVersion": "1"}) is not None


def test_a_subscription_of_2026_goes_on_and_is_acknowledged_once() -> None:
    acknowledged = {"params": {"_meta": {"io.modelcontextprotocol/subscriptionId": "all"}}}
    session = ClientSession()
    asked = {"_meta": {}, "notifications": {"toolsListChanged": True}}
    says(session, id="all", method="subscriptions/listen", params=asked)
    assert hears(session, method="notifications/subscriptions/acknowledged", **acknowledged) is not None
    assert not session.is_waiting

    assert session.lost() == []
    assert [each["id"] for each in session.replay()] == ["all"]
    assert hears(session, method="notifications/subscriptions/acknowledged", **acknowledged) is None
    says(session, method="notifications/cancelled", params={"requestId": "all"})
    assert session.replay() == []


def test_questions_of_a_process_that_has_ended_are_withdrawn_and_their_answers_reach_no_other(
    shaken: ClientSession,
) -> None:
    """Two processes number their questions alike."""
    first = hears(shaken, id=0, method="sampling/createMessage")
    assert first is not None
    assert first["id"] == 0
    [withdrawn] = shaken.lost()
    assert (withdrawn["method"], withdrawn["params"]) == ("notifications/cancelled", {"requestId": 0})

    second = hears(shaken, id=0, method="elicitation/create")
    assert second is not None
    assert second["id"] != 0
    assert says(shaken, id=0, result={"model": "late"}) is None
    assert says(shaken, id=second["id"], result={"action": "accept"}) == {
        "jsonrpc": "2.0",
        "id": 0,
        "result": {"action": "accept"},
    }
    assert says(shaken, id=second["id"], result={"action": "accept"}) is None


def test_the_client_is_told_that_lists_which_it_has_asked_for_may_have_changed(shaken: ClientSession) -> None:
    assert shaken.changes() == []
    says(shaken, id=1, method="tools/list")
    says(shaken, id=2, method="resources/templates/list")

    assert [each["method"] for each in shaken.changes()] == [
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
    ]


def test_a_client_of_2026_is_told_through_its_subscriptions() -> None:
    session = ClientSession()
    says(session, id="all", method="subscriptions/listen", params={"notifications": {"toolsListChanged": True}})
    says(session, id=1, method="tools/list")
    says(session, id=2, method="prompts/list")

    [told] = session.changes()
    assert told["method"] == "notifications/tools/list_changed"
    assert told["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "all"}


@pytest.mark.parametrize("text", [b"nonsense\n", b"[1]\n", b'{"id":', b"\n"])
def test_what_is_no_message_is_passed_on_for_the_gateway_to_refuse(text: bytes) -> None:
    assert ClientSession().passed_to_gateway(text) == text
    assert ClientSession().passed_to_client(text) == text


@pytest.mark.parametrize("id_", [1, 1234567890, "text", 1.5])
@pytest.mark.parametrize("answer", ["result", "error"])
def test_an_answer_is_known_by_its_id_however_long_it_is(shaken: ClientSession, id_: Any, answer: str) -> None:
    says(shaken, id=id_, method="tools/call")
    assert shaken.is_waiting
    hears(shaken, id=id_, **{answer: {"id": 7, "method": "x", "text": "x" * 10_000}})
    assert not shaken.is_waiting
