"""Entries of a catalog, made from the skills, prompts and resources that a server lists."""

from typing import Any

import pytest

from tests.kit.skills import skill_entry
from toolsearch.tools.definition import READ_ONLY, Tool, ToolDefinition, ToolOrigin
from toolsearch.upstreams.contents import SkillFolders, read_contents
from toolsearch.upstreams.interface import Listing
from toolsearch.wire.mcp.lists import DIRECTORY


def listing(tools: tuple[str, ...] = (), **lists: Any) -> Listing:
    own = tuple(Tool(ToolDefinition(name, server="shop"), origin=ToolOrigin("shop", name, {})) for name in tools)
    return Listing("shop", own, **lists)


def entries(listed: Listing) -> dict[str, Tool]:
    found, refused = read_contents(listed)
    assert refused == []
    return {entry.name: entry for entry in found}


def refusals(listed: Listing) -> list[tuple[str, str]]:
    found, refused = read_contents(listed)
    assert found == []
    return [(refusal.name, refusal.reason) for refusal in refused]


def test_each_kind_becomes_an_entry_that_keeps_what_the_server_sent():
    skill = skill_entry("refunds", description="Refund a customer.")
    prompt = {
        "name": "ask",
        "title": "Ask",
        "description": "Ask about a topic.",
        "arguments": [{"name": "topic", "description": "What about.", "required": True}, {"name": "tone"}],
    }
    resource = {"uri": "file:///terms.txt", "name": "terms", "description": "The terms."}
    template = {"uriTemplate": "db://{table}/rows{?limit}", "name": "rows"}
    found = entries(listing(skills=(skill,), prompts=(prompt,), resources=(resource,), resource_templates=(template,)))

    assert [(each.name, each.definition.kind, each.origin) for each in found.values()] == [
        ("shop__refunds", "skill", ToolOrigin("shop", "skill://refunds/SKILL.md", skill)),
        ("shop__ask", "prompt", ToolOrigin("shop", "ask", prompt)),
        ("shop__terms", "resource", ToolOrigin("shop", "file:///terms.txt", resource)),
        ("shop__rows", "resource", ToolOrigin("shop", "db://{table}/rows{?limit}", template)),
    ]
    assert found["shop__ask"].definition == ToolDefinition(
        "shop__ask",
        "Ask about a topic.",
        {
            "type": "object",
            "properties": {"topic": {"type": "string", "description": "What about."}, "tone": {"type": "string"}},
            "required": ["topic"],
            "additionalProperties": False,
        },
        title="Ask",
        annotations={READ_ONLY: True},
        server="shop",
        kind="prompt",
    )
    assert found["shop__rows"].definition.input_schema == {
        "type": "object",
        "properties": {"table": {"type": "string"}, "limit": {"type": "string"}},
        "required": ["table"],
        "additionalProperties": False,
    }


def test_an_entry_never_takes_the_name_of_a_tool_or_of_an_earlier_kind():
    found = entries(
        listing(
            ("shop__refunds",),
            skills=(skill_entry("refunds"),),
            prompts=({"name": "refunds"}, {"name": "terms"}),
            resources=({"uri": "file:///terms", "name": "terms"},),
            resource_templates=({"uriTemplate": "file:///{a}", "name": "terms"},),
        )
    )

    assert {name: each.definition.kind for name, each in found.items()} == {
        "shop__refunds_skill": "skill",
        "shop__refunds_prompt": "prompt",
        "shop__terms": "prompt",
        "shop__terms_resource": "resource",
        "shop__terms_resource_bcfceaf7": "resource",
    }


@pytest.mark.parametrize("order", [1, -1])
def test_skills_of_one_name_are_named_by_their_paths_in_any_order(order):
    skills = [skill_entry("refunds", prefix=prefix) for prefix in ("billing/", "support/")][::order]

    assert {name: each.remote_name for name, each in entries(listing(skills=tuple(skills))).items()} == {
        "shop__billing_refunds": "skill://billing/refunds/SKILL.md",
        "shop__support_refunds": "skill://support/refunds/SKILL.md",
    }


def test_a_name_that_cannot_be_written_stays_readable_in_the_title():
    (prompt,) = entries(listing(prompts=({"name": "größe ändern"},))).values()

    assert (prompt.name, prompt.definition.title) == ("shop__grosse_andern", "größe ändern")


def test_a_nested_skill_is_an_entry_of_its_own():
    outer = skill_entry("outer", {"inner/SKILL.md": b"---\n"})

    assert list(entries(listing(skills=(outer, skill_entry("inner", prefix="outer/"))))) == [
        "shop__outer",
        "shop__inner",
    ]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"resources": "dynamic"}, "is dynamic"),
        ({"resources": None}, "listed once each, SKILL.md among them"),
        ({"frontmatter": {"name": "other", "description": "d"}}, "is not in a folder of its name"),
        ({"frontmatter": {"name": "refunds"}}, "has no description"),
        ({"frontmatter": "name: refunds"}, "needs the 'uri' of its SKILL.md and its 'frontmatter'"),
        ({"uri": "skill://refunds"}, "needs the 'uri' of its SKILL.md and its 'frontmatter'"),
    ],
)
def test_a_skill_that_cannot_be_verified_is_refused_with_a_reason(entry, reason):
    ((name, told),) = refusals(listing(skills=({**skill_entry("refunds"), **entry},)))

    assert name.startswith("shop: skill skill://refunds")
    assert reason in told


def resource(path: str, size: int = 1, digest: str = "a" * 64) -> dict[str, Any]:
    return {"uri": f"skill://refunds/{path}", "size": size, "digest": f"sha256:{digest}"}


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([resource("../../etc/passwd")], "not in its folder"),
        ([resource("%2e%2e/passwd")], "not in its folder"),
        ([{**resource("a"), "uri": "skill://other/a"}], "not in its folder"),
        ([{**resource("a"), "uri": "file:///etc/passwd"}], "not in its folder"),
        ([resource("a", digest="A" * 64)], "no digest"),
        ([resource("a", size=-1)], "no size"),
        ([resource("a"), resource("a")], "once each"),
        ([resource(f"{number}") for number in range(5_000)], "the skill has 5,001 files"),
        ([resource("a", 17_000_000)], "at most 512 files and 16,777,216 bytes"),
    ],
)
def test_a_skill_with_such_files_is_refused(files, reason):
    skill = skill_entry("refunds")
    ((_, told),) = refusals(listing(skills=({**skill, "resources": [*skill["resources"], *files]},)))

    assert reason in told


def test_instructions_of_ten_megabytes_are_refused():
    skill = {**skill_entry("refunds"), "resources": [resource("SKILL.md", 10_000_000)]}

    ((_, reason),) = refusals(listing(skills=(skill,)))

    assert reason == "its SKILL.md has 10,000,000 bytes; at most 1,048,576 are allowed"


@pytest.mark.parametrize("arguments", [{"name": "a"}, [7], [{"name": 7}], [{"name": "a"}, {"name": "a"}]])
def test_a_prompt_whose_arguments_cannot_be_given_is_refused(arguments):
    ((name, _),) = refusals(listing(prompts=({"name": "ask", "arguments": arguments},)))

    assert name == "shop: prompt ask"


def test_a_template_that_cannot_be_expanded_is_refused():
    ((name, reason),) = refusals(listing(resource_templates=({"uriTemplate": "file:///{path:3}"},)))

    assert name == "shop: resource file:///{path:3}"
    assert reason.startswith("its template cannot be expanded: ")


def test_a_directory_is_an_entry_only_of_a_server_that_lists_directories():
    folder = {"uri": "docs://all", "name": "all", "mimeType": DIRECTORY}

    assert list(entries(listing(resources=(folder,), reads_directories=True))) == ["shop__all"]
    assert refusals(listing(resources=(folder,))) == [
        ("shop: resource docs://all", "it is a directory, and the server cannot list directories")
    ]


@pytest.mark.parametrize("more", [{}, {"resources": "dynamic"}, {"frontmatter": 7}])
def test_files_of_a_skill_are_no_resources_of_their_own_even_if_the_skill_is_refused(more):
    skill = {**skill_entry("refunds", prefix="acme/"), **more}
    files = tuple(
        {"uri": f"skill://acme/{path}", "name": "x"} for path in ("refunds/SKILL.md", "refunds", "refunds/a/b")
    )

    found, _ = read_contents(
        listing(skills=(skill,), resources=(*files, {"uri": "skill://acme/refunds2", "name": "y"}))
    )

    assert [entry.remote_name for entry in found if entry.definition.kind == "resource"] == ["skill://acme/refunds2"]


@pytest.mark.parametrize(
    "uri",
    [
        "skill://acme/refunds/SKILL.md",
        "SKILL://Acme/refunds/SKILL.md",
        "skill://acme//refunds/x?version=2",
        "skill://acme/ref%75nds/x",
        "skill://acme%2Frefunds",
        "skill://acme/refunds/http://x",
        "skill://acme/x/../refunds/SKILL.md",
        "skill://acme/./refunds/SKILL.md",
        "skill://acme/x/%2E./refunds/SKILL.md",
        "skill://acme/x/%252e%252e/refunds/SKILL.md",
        "skill://acme/x\\..\\refunds\\SKILL.md",
        "skill://acme/refunds/SKILL.md?/../../../x",
        " skill://acme/refunds/SKILL.md",
        "\x00skill://acme/refunds/SKILL.md\x1f",
        "skill://ac\tme/ref\r\nunds/SKILL.md",
        "skill://acme:/refunds/SKILL.md",
        "skill://acme:80/refunds/SKILL.md",
        "skill://@acme/refunds/SKILL.md",
        "skill://one:two@acme/refunds/SKILL.md",
        "skill://one;two@acme/refunds/SKILL.md",
        "skill://one\\two@acme/refunds/SKILL.md",
        "skill:/acme/refunds/SKILL.md",
        "skill:acme/refunds/SKILL.md",
        "skill:///acme/refunds/SKILL.md",
        "skill://acme/refunds./SKILL.md",
        "skill://acme/refunds?x",
        "skill://acme/refunds#x",
        "skill://acme/Refunds/skill.md",
        "skill://acme/%25252572efunds/SKILL.md",
        "skill://\uff41cme/refunds/SKILL.md",
        "skill://ac\u00adme/refunds/SKILL.md",
        "skill://" + "/" * 9_000 + "acme/refunds/SKILL.md",
        " " * 9_000 + "skill://acme/refunds/SKILL.md",
        "skill://" + "x/" * 5_000 + "../" * 5_000 + "acme/refunds/SKILL.md",
    ],
)
def test_a_file_of_a_skill_is_recognised_however_its_uri_is_written(uri):
    assert SkillFolders([skill_entry("refunds", prefix="acme/")]).holds(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "skill://acme",
        "skill://refunds",
        "skill://acme/refunds2",
        "skill://acme/a%20b/caf\u00e9?version=2",
        "other://acme/refunds/SKILL.md",
        "other://@acme/../refunds/SKILL.md",
        "acme/refunds",
        "",
    ],
)
def test_what_only_looks_similar_is_no_file_of_the_skill(uri):
    assert not SkillFolders([skill_entry("refunds", prefix="acme/")]).holds(uri)


@pytest.mark.parametrize(
    ("skill", "uri"),
    [
        ("skill:/refunds/SKILL.md", "skill:/refunds/SKILL.md"),
        ("refunds/SKILL.md", "refunds/SKILL.md"),
        ("file:///docs/refunds/SKILL.md", "file://localhost/docs/refunds/SKILL.md"),
        ("http://127.0.0.1/refunds/SKILL.md", "http://2130706433:80/refunds/SKILL.md"),
        ("skill://one@acme/refunds/SKILL.md", "skill://acme/refunds/SKILL.md"),
        ("skill://acme/../refunds/SKILL.md", "skill://acme/refunds/SKILL.md"),
    ],
)
def test_the_folder_of_a_skill_is_recognised_however_the_skill_is_listed(skill, uri):
    assert SkillFolders([{"uri": skill}]).holds(uri)


def test_the_skills_of_a_port_leave_other_resources_of_that_port_alone():
    folders = SkillFolders([{"uri": "skill://localhost:8000/refunds/SKILL.md"}])
    assert folders.holds("skill://localhost:8000/refunds/rules.md")
    assert not folders.holds("skill://localhost:8000/terms.md")


def test_without_skills_every_spelling_is_an_ordinary_resource():
    assert not SkillFolders(()).holds("skill://@acme/../x")


def test_an_entry_that_could_be_of_two_lists_is_refused():
    both = {"uri": "u://x", "uriTemplate": "u://x", "name": "x"}
    for listed in (listing(resources=(both,)), listing(resource_templates=(both,))):
        ((_, reason),) = refusals(listed)
        assert reason.startswith("it has a 'uri")
