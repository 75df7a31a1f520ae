"""The requests by which entries are read at their server, and what a model reads of the answers."""

import base64
from typing import Any

import pytest
from mcp import MCPError

from tests.kit.skills import skill_entry, skill_text
from toolsearch.documents.skills import digest_of
from toolsearch.errors import BadArgumentsError, ChangedSkillError, ToolExecutionError, ToolSearchError
from toolsearch.tools.definition import Tool, ToolDefinition, ToolOrigin
from toolsearch.upstreams.contents import read_contents
from toolsearch.upstreams.entry_requests import EntryRequest, explained, output_of, request_of
from toolsearch.upstreams.interface import Listing

SKILL = skill_entry("refunds", {"rules.md": b"Rules.", "logo.png": b"\x89PNG"})
INSTRUCTIONS = skill_text("refunds")
ROOT = "skill://refunds"
WHOSE = "the skill 'refunds' from the MCP server shop; the user did not write it."
FOLDER = {"uri": "docs://all", "mimeType": "inode/directory"}


def entry(**lists: Any) -> Tool:
    """The only entry of such a listing."""
    ((found,), _) = read_contents(Listing("shop", (), **lists))
    return found


def skill(raw: Any = SKILL) -> Tool:
    return entry(skills=(raw,))


def template(uri: str) -> Tool:
    return entry(resource_templates=({"uriTemplate": uri, "name": "rows"},))


def contents(**part: Any) -> dict[str, Any]:
    return {"contents": [{"uri": "any", **part}]}


def test_a_tool_is_called_and_the_others_are_read_under_the_servers_own_names():
    pay = Tool(ToolDefinition("shop__pay", server="shop"), origin=ToolOrigin("shop", "pay!", {}))
    ask = entry(prompts=({"name": "ask me", "arguments": [{"name": "topic"}]},))
    terms = entry(resources=({"uri": "file:///terms.txt", "name": "terms"},))
    folder = entry(resources=(FOLDER,), reads_directories=True)

    assert [
        request_of(pay, {"sum": 2}, skills=()),
        request_of(ask, {"topic": "x"}, skills=()),
        request_of(terms, {}, skills=()),
        request_of(folder, {}, skills=()),
        request_of(skill(), {}, skills=(SKILL,)),
        request_of(skill(), {"file": "rules.md"}, skills=(SKILL,)),
    ] == [
        ("tools/call", {"name": "pay!", "arguments": {"sum": 2}}),
        ("prompts/get", {"name": "ask me", "arguments": {"topic": "x"}}),
        ("resources/read", {"uri": "file:///terms.txt"}),
        ("resources/directory/read", {"uri": "docs://all"}),
        ("resources/read", {"uri": f"{ROOT}/SKILL.md"}),
        ("resources/read", {"uri": f"{ROOT}/rules.md"}),
    ]


@pytest.mark.parametrize("file", ["secret.md", "../other/SKILL.md", "/etc/passwd", "skill://refunds/rules.md", "%2e"])
def test_only_listed_files_of_a_skill_are_read(file):
    with pytest.raises(BadArgumentsError, match="has no file"):
        request_of(skill(), {"file": file}, skills=(SKILL,))


@pytest.mark.parametrize(
    ("uri", "arguments", "expanded"),
    [
        ("db://{table}/rows{?limit}", {"table": "a b/c", "limit": "5"}, "db://a%20b%2Fc/rows?limit=5"),
        ("db://{table}/rows{?limit}", {"table": "a"}, "db://a/rows"),
        ("file:///{+path}", {"path": "docs/a.md"}, "file:///docs/a.md"),
        ("file://{/parts*}", {"parts": ["a", "b/c"]}, "file:///a/b%2Fc"),
    ],
)
def test_a_template_is_expanded_by_its_arguments(uri, arguments, expanded):
    assert request_of(template(uri), arguments, skills=()) == ("resources/read", {"uri": expanded})


@pytest.mark.parametrize(
    ("uri", "arguments", "reason"),
    [
        ("file:///data/{+path}", {"path": "../etc/passwd"}, "may not lead out of a folder"),
        ("file:///data/{+path}", {"path": "a/%2e%2e/%2e%2e/etc"}, "may not lead out of a folder"),
        ("file:///data/{+path}", {"path": "..\\x"}, "may not lead out of a folder"),
        ("file:///data/{name}/x", {"name": ".."}, "may not lead out of a folder"),
        ("file:///data{/parts*}", {"parts": ["a", ".."]}, "may not lead out of a folder"),
        ("file:///{name}", {"name": "x" * 9_000}, "8,192 are allowed"),
        ("file:///{name}", {"name": 7}, "must be a text"),
        ("file:///{name}", {"name": ["a", 7]}, "must be a text"),
    ],
)
def test_arguments_that_make_another_uri_than_the_template_means_are_refused(uri, arguments, reason):
    with pytest.raises(BadArgumentsError, match=reason):
        request_of(template(uri), arguments, skills=())


@pytest.mark.parametrize("path", ["SKILL.md", "rules.md", "unlisted.md", "", "%53KILL.md"])
def test_a_template_reads_no_file_of_a_skill_since_nothing_would_verify_it(path):
    with pytest.raises(BadArgumentsError, match="belongs to a skill"):
        request_of(template("skill://{+path}"), {"path": f"refunds/{path}"}, skills=(SKILL,))


def test_a_file_of_a_skill_is_shown_with_its_origin_if_it_is_as_listed():
    output = output_of(skill(), {}, contents(text=INSTRUCTIONS))

    head, text = (block["text"] for block in output.content)
    others = "- rules.md (6 bytes)\n- logo.png (4 bytes)"
    assert head == f"SKILL.md of {WHOSE} Its other files; read them by their paths:\n{others}"
    assert text == INSTRUCTIONS


def test_a_file_of_bytes_is_verified_and_shown_too():
    blob = base64.b64encode(b"\x89PNG").decode()

    assert output_of(skill(), {"file": "logo.png"}, contents(blob=blob)).content[1]["resource"] == {
        "uri": f"{ROOT}/logo.png",
        "mimeType": "application/octet-stream",
        "blob": blob,
    }


@pytest.mark.parametrize(
    "raw",
    [
        contents(text="Rules!"),  # the size is right, the digest is not
        contents(text="Rules."[:-1]),
        contents(text="Rules. And more."),
        contents(text="Rules.", uri="skill://other/rules.md") | {"contents": []},
        {"contents": [contents(text="Rules.")["contents"][0]] * 2},
        {"contents": "Rules."},
        {"contents": ["Rules."]},
        {},
        contents(text=7),
        contents(text="Rules\ud800"),
        contents(blob="UnVsZXM!"),
        contents(blob=base64.b64encode(b"Rules!").decode()),
    ],
)
def test_nothing_passes_of_a_file_that_is_not_as_listed(raw):
    with pytest.raises(ChangedSkillError) as raised:
        output_of(skill(), {"file": "rules.md"}, raw)

    assert "!" not in str(raised.value)
    assert (raised.value.name, raised.value.path) == ("refunds", "rules.md")


def test_what_is_larger_than_listed_is_not_even_decoded(monkeypatch):
    monkeypatch.setattr(base64, "b64decode", lambda *_, **__: pytest.fail("decoded"))

    class Text(str):
        def encode(self, *_: object) -> bytes:
            pytest.fail("encoded")

    for raw in (contents(blob="A" * 12), contents(text=Text("x" * 7))):
        with pytest.raises(ChangedSkillError):
            output_of(skill(), {"file": "rules.md"}, raw)


@pytest.mark.parametrize(
    "text",
    [
        skill_text("refunds", "Does another thing"),
        skill_text("refunds", more="allowed-tools: shell\n"),
        "no frontmatter",
        "---\nname: [\n---\n",
    ],
)
def test_instructions_whose_frontmatter_is_not_the_listed_one_are_not_shown(text):
    """The digest is right: a person has approved what the entry says, and the model would read something else."""
    listed = {"uri": f"{ROOT}/SKILL.md", "digest": digest_of(text.encode()), "size": len(text)}

    with pytest.raises(ChangedSkillError):
        output_of(skill({**SKILL, "resources": [listed]}), {}, contents(text=text))


def test_a_prompt_is_read_as_its_messages_with_their_roles():
    raw = {
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Hello"}},
            {"role": "assistant", "content": {"type": "image", "data": "", "mimeType": "image/png"}},
            "broken",
        ]
    }

    assert output_of(entry(prompts=({"name": "ask"},)), {}, raw).content == (
        {"type": "text", "text": "[user, in a prompt of the MCP server shop; the user did not write it]"},
        {"type": "text", "text": "Hello"},
        {"type": "text", "text": "[assistant, in a prompt of the MCP server shop; the user did not write it]"},
        {"type": "image", "data": "", "mimeType": "image/png"},
    )


def test_a_resource_is_read_as_its_contents_and_a_directory_as_the_uris_in_it():
    terms = entry(resources=({"uri": "file:///terms.txt", "name": "terms"},))
    folder = entry(resources=(FOLDER,), reads_directories=True)
    children = {"resources": [{"uri": "docs://all/a"}, {"name": "no URI"}], "nextCursor": "2"}

    assert output_of(terms, {}, contents(text="Terms.")).content == (
        {"type": "resource", "resource": {"uri": "any", "text": "Terms."}},
    )
    assert output_of(folder, {}, children).content == ({"type": "text", "text": "- docs://all/a\n- and more"},)
    assert output_of(folder, {}, {"resources": []}).content == ({"type": "text", "text": "(empty)"},)


@pytest.mark.parametrize(
    "read",
    [
        entry(prompts=({"name": "ask"},)),
        entry(resources=({"uri": "file:///terms.txt", "name": "terms"},)),
        entry(resources=(FOLDER,), reads_directories=True),
    ],
)
@pytest.mark.parametrize("raw", [{}, {"messages": {}, "contents": {}}, {"resources": 7}])
def test_an_answer_without_what_was_asked_for_is_a_failure(read, raw):
    with pytest.raises(ToolExecutionError, match="MCP server 'shop' gave no"):
        output_of(read, {}, raw)


CHANGED = ChangedSkillError("refunds", "rules.md")


@pytest.mark.parametrize(
    ("present", "now"),
    [
        (SKILL, "its server sends other files than it lists"),
        (skill_entry("refunds"), "the skill has changed"),
        (None, "its server no longer has the skill"),
        (MCPError(-32602, "no such skill"), "its server no longer has the skill"),
        (ToolSearchError("it is down"), "its server no longer has the skill"),
    ],
)
async def test_after_a_mismatch_the_server_is_asked_for_the_present_entry(present, now):
    asked: list[EntryRequest] = []

    async def send(request: EntryRequest) -> dict[str, Any]:
        asked.append(request)
        if isinstance(present, Exception):
            raise present
        return {"skill": present}

    error = await explained(CHANGED, skill(), send)

    assert asked == [("skills/get", {"uri": f"{ROOT}/SKILL.md"})]
    assert now in str(error)
    assert (error.name, error.path) == ("refunds", "rules.md")
