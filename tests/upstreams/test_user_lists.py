"""What the users of one server are listed, shown as one list: each sees what it is listed in the very same way."""

from typing import Any

from toolsearch.upstreams.interface import Listing, read_listing
from toolsearch.upstreams.user_lists import Key, UserLists
from toolsearch.wire.mcp.lists import RESOURCES, TOOLS


def tool(name: str, text: str = "") -> dict[str, Any]:
    return {"name": name, "description": text, "inputSchema": {"type": "object"}}


def listing(*tools: dict[str, Any], **other: Any) -> Listing:
    return Listing("s", tuple(read_listing("s", tools, "s")[0]), **other)


def shown(made: Listing) -> dict[str, str]:
    return {each.remote_name: each.definition.description for each in made.tools}


def take(lists: UserLists, owner: str, given: Listing) -> Listing:
    """Note what was listed, as if it had been judged at once."""
    judged, show = lists.with_(owner, given)
    show()
    return judged


def seen(lists: UserLists, owner: str) -> list[str]:
    return sorted(name for _, name in lists.visible(owner, may_see_first=True))


def test_nothing_is_shown_before_it_has_been_judged():
    lists = UserLists("s")
    take(lists, "a", listing(tool("pay", "as judged")))
    lists.ended("a")
    _, show = lists.with_("b", listing(tool("pay", "otherwise")))

    assert (seen(lists, "a"), seen(lists, "b"), seen(lists, "c")) == (["pay"], ["pay"], ["pay"])
    assert not lists.may_ask("b", Key("tools", "pay"))
    show()
    assert (seen(lists, "a"), seen(lists, "b"), seen(lists, "c")) == ([], ["pay"], [])


def test_who_is_listed_nothing_yet_sees_the_tools_that_all_others_are_listed_and_no_contents():
    lists = UserLists("s")
    take(lists, "a", listing(tool("common"), tool("hers"), resources=({"uri": "her://file", "name": "file"},)))

    assert seen(lists, "b") == ["common", "hers"]
    assert lists.visible("b", may_see_first=False) == frozenset()


def test_each_sees_what_it_is_listed_itself_and_what_is_of_one_is_seen_by_that_one():
    lists = UserLists("s")
    take(lists, "a", listing(tool("common"), tool("hers")))
    both = take(lists, "b", listing(tool("common"), tool("his"), resources=({"uri": "his://file", "name": "file"},)))

    assert sorted(shown(both)) == ["common", "hers", "his"]
    assert (seen(lists, "a"), seen(lists, "b")) == (["common", "hers"], ["common", "his", "his://file"])
    assert seen(lists, "c") == ["common"]


def test_a_name_that_is_defined_in_another_way_for_one_user_is_out_of_its_reach_and_is_told():
    lists = UserLists("s")
    take(lists, "a", listing(tool("pay", "as judged")))
    both = take(lists, "b", listing(tool("pay", "otherwise")))

    assert shown(both) == {"pay": "as judged"}
    assert (seen(lists, "a"), seen(lists, "b")) == (["pay"], [])
    assert (lists.may_ask("a", Key("tools", "pay")), lists.may_ask("b", Key("tools", "pay"))) == (True, False)
    assert lists.differing == {Key("tools", "pay"): 1}


def test_the_definition_counts_that_is_listed_to_who_is_connected_for_the_longest_time():
    lists = UserLists("s")
    take(lists, "a", listing(tool("pay", "old")))
    take(lists, "b", listing(tool("pay", "old")))
    assert shown(take(lists, "b", listing(tool("pay", "new")))) == {"pay": "old"}
    lists.ended("a")
    assert shown(take(lists, "b", listing(tool("pay", "new")))) == {"pay": "new"}
    assert (seen(lists, "a"), seen(lists, "b")) == ([], ["pay"])
    take(lists, "a", listing(tool("pay", "new")))
    assert seen(lists, "a") == ["pay"]


def test_what_nobody_is_listed_may_be_asked_for_except_tools_and_by_nobody_who_was_listed_nothing():
    lists = UserLists("s")
    take(lists, "a", listing(tool("pay"), resources=({"uri": "her://file", "name": "file"},)))
    take(lists, "b", listing())

    asked = [Key.of(TOOLS, "other"), Key.of(RESOURCES, "any://where"), Key.of(RESOURCES, "her://file")]
    assert [lists.may_ask("a", key) for key in asked] == [False, True, True]
    assert [lists.may_ask("b", key) for key in asked] == [False, True, False]
    assert not any(lists.may_ask("c", key) for key in asked)


def test_who_has_logged_out_is_shown_what_anybody_is():
    lists = UserLists("s")
    take(lists, "a", listing(tool("common")))
    take(lists, "b", listing(tool("common"), tool("his")))
    lists.forget("b")

    assert seen(lists, "b") == ["common"]


def test_instructions_are_written_for_one_user_and_shown_to_nobody():
    made = take(UserLists("s"), "a", listing(tool("common"), instructions="Alice's projects are X and Y."))

    assert made.instructions == ""


def test_names_are_told_apart_over_all_users():
    lists = UserLists("s")
    (alone,) = take(lists, "a", listing(tool("make-it"))).tools
    both = take(lists, "b", listing(tool("make it"))).tools

    assert alone.name == "s__make-it"
    assert len({each.name for each in both}) == 2


def test_what_was_kept_is_shown_until_somebody_is_listed():
    lists = UserLists("s")
    kept = lists.take_kept(listing(tool("old"), resources=({"uri": "x://y", "name": "y"},)))
    assert kept is not None
    assert (shown(kept), kept.resources, seen(lists, "a")) == ({"old": ""}, (), ["old"])

    take(lists, "a", listing(tool("new")))
    assert seen(lists, "b") == ["new"]
    assert shown(lists.first) == {"new": ""}
    assert lists.take_kept(listing(tool("old"))) is None


def test_equal_definitions_of_many_users_are_kept_once():
    lists = UserLists("s")
    for number in range(3):
        take(lists, str(number), listing(tool("common"), tool(f"own {number}")))

    entries = [each.entries[Key("tools", "common")] for each in lists._state.users.values()]
    assert all(each is entries[0] for each in entries)
