"""Skills, prompts and resources in toolsets: by names and words of their own, and as their catalogs change."""

from dataclasses import replace
from typing import Any

import pytest

from tests.kit.skills import content, skill_entry
from tests.service.corpora.test_corpora import filled, found, storage
from tests.service.corpora.test_toolset_corpora import MAIL, TEAM, Echo, corpora_of, toolset
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.api.catalogs import ToolsetMember, ToolsetRule
from toolsearch.errors import UnknownToolError
from toolsearch.gateway.caller import Caller
from toolsearch.service.corpora.corpus import Corpus
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.tools.definition import EntryKind, Tool
from toolsearch.upstreams.contents import read_contents
from toolsearch.upstreams.interface import Listing
from toolsearch.wire.mcp.eras import Era

__all__ = ["storage"]


def entry(name: str, description: str, kind: EntryKind = "skill") -> Tool:
    return content(name, description, kind=kind, server="team", callback=Echo(f"catalog's {name}"))


REFUND = entry("team__refund", "Pay a customer back: check the order first.")
GREETING = entry("team__greeting", "A greeting for letters.", "prompt")


ANN = Caller(Grant(Principal("ann")), Era.MODERN)


def lists(corpus: Corpus, *entries: Tool) -> None:
    """As the registry does when a server lists *entries*."""
    corpus.engine.catalog.sync("team", entries)


def kinds(corpus: Corpus) -> dict[str, str]:
    return {name: each.definition.kind for name, each in corpus.engine.catalog.contents.items()}


async def test_a_toolset_shows_a_skill_by_its_own_name_and_words(storage: SqliteStorage) -> None:
    catalog = filled(storage, "tools", MAIL)
    toolset(storage, ToolsetMember("tools", "team__refund", "money-back", "Give the money back."))
    corpora = corpora_of(storage)
    async with corpora.using(catalog) as corpus:
        lists(corpus, REFUND, GREETING)
        async with corpora.using(TEAM) as team:
            assert kinds(team) == {"money-back": "skill"}
            assert found(team, "give the money back") == ["money-back"]
            shown = team.engine.view(Reach()).get_entry("money-back")
            assert shown.original == REFUND.definition
            assert team.engine.search("money", reach=Reach.parse(["team__*"]))[0].name == "money-back"
            assert team.engine.search("money", reach=Reach.parse(["*"], ["team__refund"])) == []
    await corpora.aclose()


async def test_rules_take_in_what_is_of_a_kind_and_follow_what_the_catalog_lists(storage: SqliteStorage) -> None:
    catalog = filled(storage, "tools", MAIL)
    toolset(storage, rules=(ToolsetRule("tools", ("kind:skill", "kind:tool"), ()),))
    corpora = corpora_of(storage)
    async with corpora.using(TEAM) as team, corpora.using(catalog) as corpus:
        assert kinds(team) == {}
        lists(corpus, REFUND, GREETING)
        assert kinds(team) == {"team__refund": "skill"}
        lists(corpus, entry("team__refund", "Water the plants in the office."))
        assert found(team, "water the plants") == ["team__refund"]
        assert team.engine.catalog.contents["team__refund"].definition.description == "Water the plants in the office."
        lists(corpus)
        assert kinds(team) == {}
        assert found(team, "water the plants") == []
        assert found(team, "send a letter") == ["send_mail"]
    await corpora.aclose()


async def test_clients_of_a_toolset_are_listed_the_files_that_the_server_has_now(storage: SqliteStorage) -> None:
    catalog = filled(storage, "tools")
    toolset(storage, ToolsetMember("tools", "team__refunds", "refunds"))
    corpora = corpora_of(storage)
    async with corpora.using(TEAM) as team, corpora.using(catalog) as corpus:
        for rules in (b"30 days", b"31 days and more"):
            skills = (skill_entry("refunds", {"rules.md": rules}),)
            lists(corpus, *read_contents(Listing("team", (), skills=skills))[0])
            (listed,) = team.gateway.content.skills(ANN)
            assert [each["size"] for each in listed["resources"]][1:] == [len(rules)]
    await corpora.aclose()


async def test_a_name_may_come_to_be_of_another_kind(storage: SqliteStorage) -> None:
    catalog = filled(storage, "tools")
    toolset(storage, ToolsetMember("tools", "team__refund", "refund"))
    corpora = corpora_of(storage)
    async with corpora.using(TEAM) as team, corpora.using(catalog) as corpus:
        for kind in ("skill", "tool", "prompt"):
            lists(corpus, entry("team__refund", "Pay a customer back.", kind))
            everything = team.engine.search("pay a customer back", kinds=("tool", "skill", "prompt", "resource"))
            assert [(each.name, each.kind) for each in everything] == [("refund", kind)]
    await corpora.aclose()


async def test_the_name_of_a_skill_never_comes_to_mean_that_of_another_catalog(storage: SqliteStorage) -> None:
    first, second = filled(storage, "first"), filled(storage, "second")
    toolset(storage, rules=(ToolsetRule("first"), ToolsetRule("second")))
    corpora = corpora_of(storage)
    async with corpora.using(TEAM) as team, corpora.using(first) as one, corpora.using(second) as other:
        lists(one, REFUND)
        lists(other, replace(REFUND, definition=replace(REFUND.definition, description="Keep the money.")))
        assert team.toolset is not None
        assert [(each.catalog, each.state) for each in team.toolset.resolution.absent] == [("second", "refused")]
        assert team.engine.catalog.contents["team__refund"].definition == REFUND.definition
        lists(one)
        assert kinds(team) == {}
    await corpora.aclose()


async def test_a_skill_that_has_left_its_catalog_cannot_be_read(storage: SqliteStorage) -> None:
    catalog = filled(storage, "tools")
    toolset(storage, ToolsetMember("tools", "team__refund", "refund"))
    corpora = corpora_of(storage)
    async with corpora.using(TEAM) as team, corpora.using(catalog) as corpus:
        lists(corpus, REFUND)
        shown: Any = team.engine.view(Reach()).get_entry("refund")
        lists(corpus)
        with pytest.raises(UnknownToolError):
            await shown.callback.call({}, None)
        assert team.engine.view(Reach()).find_entry("refund") is None
        team.engine.catalog.put(shown, content("other"))  # as it is for a moment
        assert team.gateway.content.skills(ANN) == []
    await corpora.aclose()
