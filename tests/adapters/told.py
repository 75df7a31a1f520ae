"""What each person's story comes to, in whichever framework it is played."""

import json
from dataclasses import replace
from typing import Any

from tests.adapters.inside.story import ORDERS, SEARCH, TURNS
from tests.kit.loopback import Call, Reply

FINDS = {"mail": "send_mail", "money": "convert_money", "room": "book_room"}
_LOADED = (
    "Tools marked 'loaded' are in your tool list: call them by name. To load another, send the query select:NAME.\n"
)
_NO_BILL = '"select:pay_bill": no tool found.\nNo tool is named pay_bill.'
RESULTS = {  # by the search and the calls of a turn: the text, and whether the call failed
    "mail": [
        (f"{_LOADED}- send_mail(to*, text*) [fits, loaded]: Send an email message.", False),
        ("sent 'hello' to Ada", False),
        ("the tool 'send_mail' may be called 1 times a turn, and that is used up; go on with what you have", True),
    ],
    "money": [
        (f"{_LOADED}- convert_money(amount*) [fits, loaded]: Convert money to another currency.", False),
        ("the arguments do not fit the schema of 'convert_money': amount: expected number, got string", True),
        ("40.0", False),
    ],
    "room": [
        (
            f'{_LOADED}"book a meeting room":\n- book_room(day*) [fits, loaded]: Book a meeting room.\n{_NO_BILL}',
            False,
        ),
        ("the call was denied: closed on Sundays", True),
        ("booked on Monday", False),
        ("all rooms are taken", True),
    ],
}


def lists(who: str = "ada") -> list[list[str]]:
    """The tools that the model has in each request: the search tool, and what was found before."""
    listed, requests = [SEARCH], []
    for topic in ORDERS[who]:
        requests.append(listed)
        listed = [*listed, FINDS[topic]]
        requests += [listed] * (len(TURNS[topic]) - 1)
    return requests


def results(who: str = "ada") -> list[list[Any]]:
    return [list(result) for topic in ORDERS[who] for result in RESULTS[topic]]


def answers(who: str = "ada") -> list[Any]:
    return [TURNS[topic][-1] for topic in ORDERS[who]]


def replies(who: str = "ada", *, through: str = "") -> list[Reply]:
    """What a loopback server is to say; *through* is the tool that runs all others."""
    return [_reply(said, through) for topic in ORDERS[who] for said in TURNS[topic]]


def _reply(said: Any, through: str) -> Reply:
    if isinstance(said, str):
        return Reply(said)
    return Reply(calls=[_call(name, arguments, through) for name, arguments in said])


def _call(name: str, arguments: dict[str, Any], through: str) -> Call:
    if name == SEARCH or not through:
        return Call(name, arguments)
    return Call(through, {"name": name, "arguments": arguments})


def assert_told(record: dict[str, Any], *, marks_failures: bool = True) -> None:
    """Three people were served at the same time, and each found and was told what is theirs."""
    assert record.keys() == ORDERS.keys()
    for who, told in record.items():
        assert told["listed"] == lists(who)
        assert told["results"] == [[text, failed and marks_failures] for text, failed in results(who)]
        assert told["answers"] == answers(who)


CUT_OFF = "did not finish"  # what the model reads of a call in a reply that was cut off


def cut_off_replies(stop: Any, *, through: str = "") -> list[Reply]:
    """As much of Ada's story as a reply that ends early leaves of it, with a whole call in that reply."""
    search = ("toolSearchTool", {"query": "send an email message", "limit": 1})
    [found, called] = [_reply([each], through) for each in (search, ("send_mail", {"to": "Ada", "text": "hello"}))]
    return [found, replace(called, **stop), Reply("It was too long."), Reply("Bye."), Reply("Bye.")]


def assert_not_run(sent: Any) -> None:
    """The request after the reply that was cut off answers its call, with nothing of what the tool says."""
    assert CUT_OFF in json.dumps(sent)
    assert "sent 'hello'" not in json.dumps(sent)
