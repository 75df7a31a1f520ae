"""What the proxy remembers of replies that a model API stores, and for whom."""

from __future__ import annotations

import pytest

from toolsearch.proxy.known_replies import CallersReplies, Continued, KnownReplies
from toolsearch.wire.carried import CarriedCall
from toolsearch.wire.proxied import Stored

SEARCH = CarriedCall(0, "call_1", "toolSearchTool", '{"queries": ["\u00e4\ud83d"]}', ["mail__send_mail"], False, {})
RAN = CarriedCall(1, "call_2", "told_time", "{}", "noon", False, {"id": "fc_2"})


def reply(reply_id: str, *unanswered: CarriedCall) -> Continued:
    return Continued(Stored(reply_id, f"{reply_id}_last", unanswered), "fixed", ["Read"], ["mail__send_mail"])


def large(reply_id: str, size: int = 10_000) -> Continued:
    return reply(reply_id, RAN._replace(answer="x" * size))


def known_of(replies: CallersReplies, *reply_ids: str) -> list[str]:
    return [each for each in reply_ids if replies.get(each) is not None]


def test_a_reply_is_known_as_it_was() -> None:
    """Calls that have no answer at the API are, too, even with text that is no Unicode."""
    replies = KnownReplies().of()
    replies.put(reply("resp_1", SEARCH, RAN))

    assert replies.get("resp_1") == Continued(
        Stored("resp_1", "resp_1_last", [SEARCH, RAN]), "fixed", ["Read"], ["mail__send_mail"]
    )
    assert replies.get("resp_2") is None


@pytest.mark.parametrize(
    ("tenant", "caller"),
    [("b", ("one", "api")), ("a", ("two", "api")), ("a", ("one", "another")), ("a", ("one", "api", "more"))],
)
def test_nobody_but_its_caller_knows_a_reply(tenant: str, caller: tuple[str, ...]) -> None:
    known = KnownReplies()
    known.of("a", "one", "api").put(reply("resp_1"))

    assert known.of("a", "one", "api").get("resp_1") is not None
    assert known.of(tenant, *caller).get("resp_1") is None


def test_what_was_used_longest_ago_is_forgotten_when_there_is_no_more_room() -> None:
    replies = KnownReplies(most_bytes=35_000).of()
    for number in range(3):
        replies.put(large(f"resp_{number}"))
    assert known_of(replies, "resp_1", "resp_0") == ["resp_1", "resp_0"]
    replies.put(large("resp_3"))

    assert known_of(replies, "resp_0", "resp_1", "resp_2", "resp_3") == ["resp_0", "resp_1", "resp_3"]


def test_small_replies_are_forgotten_as_well() -> None:
    """Each takes memory beside its text."""
    replies = KnownReplies(most_bytes=10_000).of()
    ids = [f"resp_{number}" for number in range(60)]
    for each in ids:
        replies.put(reply(each))

    assert 20 < len(known_of(replies, *ids)) < 40


def test_a_reply_that_is_kept_again_takes_no_more_room() -> None:
    replies = KnownReplies(most_bytes=35_000).of()
    for reply_id in ("resp_0", *["resp_1"] * 9, "resp_2"):
        replies.put(large(reply_id))

    assert known_of(replies, "resp_0", "resp_1", "resp_2") == ["resp_0", "resp_1", "resp_2"]


def test_a_tenant_with_many_replies_displaces_only_its_own() -> None:
    known = KnownReplies(most_bytes=100_000)
    small = known.of("small", "one")
    small.put(large("resp_0"))
    greedy = [known.of("greedy", caller) for caller in ("one", "two")]
    for number in range(40):
        greedy[number % 2].put(large(f"resp_{number}"))
    small.put(large("resp_1"))

    assert known_of(small, "resp_0", "resp_1") == ["resp_0", "resp_1"]
    assert [known_of(each, "resp_0", "resp_1", "resp_38", "resp_39") for each in greedy] == [["resp_38"], ["resp_39"]]


def test_a_reply_with_a_long_id_and_a_large_reply_are_not_kept() -> None:
    replies = KnownReplies().of()
    replies.put(reply("r" * 257))
    replies.put(reply("r" * 256))
    replies.put(large("large", 2**20))
    replies.put(Continued(Stored("wide", "id" * 2**20, []), "fixed", [], []))

    assert known_of(replies, "r" * 256, "r" * 257, "large", "wide") == ["r" * 256]


def test_a_large_reply_takes_the_place_of_an_older_one_with_its_id() -> None:
    """So that nothing is continued from a state that is not the last."""
    replies = KnownReplies().of()
    replies.put(reply("resp_1"))
    replies.put(large("resp_1", 2**20))

    assert replies.get("resp_1") is None
