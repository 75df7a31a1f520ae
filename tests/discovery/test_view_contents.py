"""What a caller sees of skills, prompts and resources through its reach."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.skills import content
from toolsearch import Catalog, Reach, ToolDefinition
from toolsearch.access.reach import EVERY_TOOL
from toolsearch.discovery.view import View, ViewCache
from toolsearch.errors import BadQueryError, UnknownToolError
from toolsearch.tokens import HeuristicTokenCounter
from toolsearch.tools.definition import KINDS, EntryKind
from toolsearch.upstreams.interface import ServerHealth, UpstreamState


def catalog() -> Catalog:
    return Catalog(
        [
            ToolDefinition("pay__refund", server="pay", tags=("money",)),
            content("team__refunds", server="team"),
            content("team__onboarding", server="team"),
            content("acme__ask", kind="prompt", server="acme"),
            content("acme__policy", kind="resource", server="acme"),
        ]
    )


def view_of(entries: Catalog, allow: list[str] | None = None, deny: list[str] | None = None) -> View:
    return ViewCache(entries, HeuristicTokenCounter()).get(Reach.parse(allow or EVERY_TOOL, deny or ()))


CASES: list[tuple[list[str], list[str], set[str]]] = [
    ([], [], {"pay__refund", "team__refunds", "team__onboarding", "acme__ask", "acme__policy"}),
    (["kind:skill"], [], {"team__refunds", "team__onboarding"}),
    ([], ["kind:skill"], {"pay__refund", "acme__ask", "acme__policy"}),
    (["kind:skill", "kind:prompt"], ["team__on*"], {"team__refunds", "acme__ask"}),
    (["kind:tool"], [], {"pay__refund"}),
    ([], ["kind:tool"], {"team__refunds", "team__onboarding", "acme__ask", "acme__policy"}),
    (["server:acme"], ["kind:resource"], {"acme__ask"}),
    (["class:read"], [], {"team__refunds", "team__onboarding", "acme__ask", "acme__policy"}),
    (["tag:money"], [], {"pay__refund"}),
    (["team__refunds"], [], {"team__refunds"}),
]


@pytest.mark.parametrize(("allow", "deny", "reached"), CASES)
def test_rules_apply_to_every_kind(allow: list[str], deny: list[str], reached: set[str]) -> None:
    entries = catalog()
    view = view_of(entries, allow, deny)
    every = {*entries.names(), *entries.contents}

    assert {name for name in every if view.find_entry(name)} == reached
    assert set(view.names) | set(view.contents) == reached
    assert {name for name in every if view.find(name)} == reached - set(entries.contents)
    assert view.has_skills == any(name.startswith("team__") for name in reached)


def test_an_entry_of_another_kind_is_not_found_as_a_tool() -> None:
    view = view_of(catalog())
    assert view.find("team__refunds") is None
    assert not view.allows("team__refunds")
    with pytest.raises(UnknownToolError):
        view.get("team__refunds")


def test_contents_are_selected_by_kind_before_they_are_ranked() -> None:
    view = view_of(catalog(), deny=["team__on*"])
    chosen: dict[EntryKind, set[str]] = {
        kind: {name for name in catalog().contents if view.selection_of([kind]).allows(name)} for kind in KINDS
    }
    assert chosen == {"tool": set(), "skill": {"team__refunds"}, "prompt": {"acme__ask"}, "resource": {"acme__policy"}}
    assert not view.selection_of(KINDS).allows("team__onboarding")
    assert not view.selection_of(["skill"]).allows("pay__refund")
    assert view.selection_of(["skill", "prompt"]) is view.selection_of(["prompt", "skill"])


def test_a_view_follows_the_contents_of_its_catalog() -> None:
    entries = Catalog()
    view = view_of(entries, deny=["server:acme"])
    assert not view.has_skills
    entries.add(content("acme__skill", server="acme"))
    assert not view.has_skills
    entries.add(content("team__skill", server="team"))
    assert (view.has_skills, list(view.contents)) == (True, ["team__skill"])
    entries.put(content("team__skill", server="acme"))
    assert (view.has_skills, list(view.contents)) == (False, [])


def test_prompts_and_resources_are_no_skills() -> None:
    assert not view_of(catalog(), deny=["kind:skill"]).has_skills


def test_names_like_a_mistyped_one_are_those_of_every_kind_in_reach() -> None:
    with pytest.raises(UnknownToolError) as raised:
        view_of(catalog()).get("team__refund")
    assert "team__refunds" in raised.value.near
    with pytest.raises(UnknownToolError) as raised:
        view_of(catalog(), deny=["kind:skill"]).get("team__refund")
    assert "team__refunds" not in raised.value.near


def test_contents_cost_no_tokens_of_definitions_and_are_in_no_count_of_tools() -> None:
    entries = catalog()
    alone = view_of(Catalog([entries.get("pay__refund")]))
    beside = view_of(entries)
    assert (beside.tokens, beside.request_tokens) == (alone.tokens, alone.request_tokens)
    assert beside.definitions == alone.definitions
    assert beside.servers == ("pay",)


def test_a_server_that_has_no_tool_can_be_named_if_anything_of_it_is_in_reach() -> None:
    views = ViewCache(catalog(), HeuristicTokenCounter())
    assert list(views.get(Reach(), "team").contents) == ["team__onboarding", "team__refunds"]
    assert views.get(Reach(), "team").names == ()
    assert views.get(Reach(), "pay").contents == {}
    with pytest.raises(BadQueryError, match=r"no server 'teem'; did you mean team.* there are: acme, pay, team"):
        views.get(Reach(), "teem")
    with pytest.raises(BadQueryError, match=r"no server 'team'; there are: acme, pay$"):
        views.get(Reach.parse(deny=["kind:skill"]), "team")


def test_the_health_of_a_server_is_known_to_those_who_reach_anything_of_it() -> None:
    entries = catalog()
    health = {name: ServerHealth(UpstreamState.DOWN, is_listed=True) for name in ("team", "pay", "other")}
    entries.ask_health(lambda: health)
    assert list(view_of(entries).server_health) == ["pay", "team"]
    assert list(view_of(entries, deny=["kind:skill"]).server_health) == ["pay"]


RULES = [
    "*",
    "team__*",
    "acme__ask",
    "server:pay",
    "server:team",
    "kind:skill",
    "kind:tool",
    "kind:prompt",
    "class:read",
]


@given(st.lists(st.sampled_from(RULES), min_size=1, max_size=3), st.lists(st.sampled_from(RULES), max_size=3))
def test_a_view_reaches_exactly_what_its_rules_allow(allow: list[str], deny: list[str]) -> None:
    entries, reach = catalog(), Reach.parse(allow, deny)
    view = ViewCache(entries, HeuristicTokenCounter()).get(reach)
    for entry in entries.entries():
        allowed = reach.allows(entry.definition)
        assert (view.find_entry(entry.name) is not None) == allowed
        assert (entry.name in view.contents) == (allowed and entry.definition.kind != "tool")
        assert view.selection_of(KINDS).allows(entry.name) == allowed
    assert view.has_skills == any(each.is_skill for each in view.contents.values())
