"""What a skill is: its frontmatter, its manifest, and what a model reads of it."""

import base64
import pickle
import tracemalloc
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.skills import content, skill, skill_entry, skill_text
from toolsearch.documents.skills import (
    MOST_BYTES,
    MOST_FILES,
    SKILL_FILE,
    Skill,
    digest_of,
    is_inside,
    skill_of,
    skill_output,
    split_frontmatter,
)
from toolsearch.errors import BadArgumentsError, BadToolError, ChangedSkillError
from toolsearch.tools.definition import Tool, ToolDefinition, ToolOrigin

NAMES = st.from_regex(r"[a-z0-9]{1,9}(-[a-z0-9]{1,9}){0,4}", fullmatch=True)
PATHS = st.from_regex(r"[a-zA-Z0-9_]{1,8}(/[a-zA-Z0-9_.]{0,3}[a-z]){0,3}", fullmatch=True)
TEXT = skill_text("refunds").encode()


# ---- frontmatter


@pytest.mark.parametrize(
    "text", ["---\na: 1\n---\nBody\n", "\ufeff---\r\na: 1\r\n---\r\nBody\r\n", "--- \na: 1\n--- \nBody\n"]
)
def test_a_frontmatter_is_split_from_its_body_whatever_ends_its_lines(text: str) -> None:
    assert split_frontmatter(text) == ({"a": 1}, "Body\n")


def test_a_skill_may_have_no_body_and_a_body_may_have_lines_of_its_own() -> None:
    assert split_frontmatter("---\na: 1\n---") == ({"a": 1}, "")
    assert split_frontmatter("---\na: 1\n---\n\n---\nb\n---\n") == ({"a": 1}, "\n---\nb\n---\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with '---'"),
        ("# A heading\n", "begins with '---'"),
        ("---\nname: a\n", "begins with '---'"),
        ("---\nname: a\n----\nbody", "begins with '---'"),
        ("---", "begins with '---'"),
        ("---\n- a\n---\n", "no mapping"),
        ("---\n---\n", "no mapping"),
        ("---\nname: [a\n---\n", "no YAML"),
        ("---\nname: *nothing\n---\n", "stands for nothing"),
        (f"---\nname: {'a' * 70_000}\n---\n", "at most 65,536"),
    ],
)
def test_what_is_no_frontmatter_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(BadToolError, match=reason):
        split_frontmatter(text)


def test_a_frontmatter_whose_aliases_stand_for_billions_of_nodes_is_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    with pytest.raises(BadToolError, match="more than 5,000,000 nodes"):
        split_frontmatter(f"---\n{bomb}---\n")


def test_a_frontmatter_is_measured_with_its_aliases_written_out() -> None:
    entry, shared = skill_entry("refunds"), "x" * 1_000
    Skill.from_entry(entry | {"frontmatter": entry["frontmatter"] | {"b": [shared] * 60}})
    with pytest.raises(BadToolError, match="too long or nested too deeply"):
        Skill.from_entry(entry | {"frontmatter": entry["frontmatter"] | {"b": [shared] * 70}})


def test_a_frontmatter_that_nests_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    entry = skill_entry("refunds")
    with pytest.raises(BadToolError, match="nested too deeply"):
        Skill.from_entry(entry | {"frontmatter": entry["frontmatter"] | {"metadata": deep}})


@given(NAMES)
def test_every_name_of_agent_skills_is_taken(name: str) -> None:
    assert Skill.from_entry(skill_entry(name)).name == name


@pytest.mark.parametrize(
    "name", ["", "Refunds", "-a", "a-", "a--b", "a_b", "a b", "ä", "a" * 65, "a\n", 3, None, ["a"]]
)
def test_every_other_name_is_refused(name: Any) -> None:
    entry = skill_entry("refunds")
    with pytest.raises(BadToolError, match="a skill's name has at most 64 characters"):
        Skill.from_entry(entry | {"frontmatter": {"name": name, "description": "x"}})


@pytest.mark.parametrize("description", ["", " \n", "x" * 1_025, None, 7])
def test_a_skill_needs_a_description_of_bounded_length(description: Any) -> None:
    entry = skill_entry("refunds")
    with pytest.raises(BadToolError, match="description"):
        Skill.from_entry(entry | {"frontmatter": {"name": "refunds", "description": description}})


# ---- the manifest


@given(NAMES, st.dictionaries(PATHS.filter(lambda path: path != SKILL_FILE), st.binary(max_size=20), max_size=5), PATHS)
def test_an_entry_is_read_and_written_without_a_loss(name: str, files: dict[str, bytes], prefix: str) -> None:
    entry = skill_entry(name, files, prefix=f"{prefix}/")
    read = Skill.from_entry(entry)

    assert read.entry() == entry
    assert {path: each.size for path, each in read.files.items() if path != SKILL_FILE} == {
        path: len(data) for path, data in files.items()
    }
    assert pickle.loads(pickle.dumps(read)) == read  # noqa: S301  made here


def test_paths_are_told_as_people_write_them_and_uris_as_the_server_does() -> None:
    read = skill("refunds", {"my%20policy.md": b"x"})
    file = read.file("my policy.md")
    assert (file.path, file.uri) == ("my policy.md", "skill://refunds/my%20policy.md")


def test_a_dynamic_skill_has_no_file_that_could_be_read() -> None:
    entry = skill_entry("refunds") | {"resources": "dynamic"}
    read = Skill.from_entry(entry)
    assert (read.is_dynamic, read.entry()) == (True, entry)
    with pytest.raises(BadArgumentsError):
        read.file(SKILL_FILE)


def changed(**fields: Any) -> dict[str, Any]:
    """The entry of a skill whose second file has other *fields*."""
    entry = skill_entry("refunds", {"a.md": b"x"})
    entry["resources"][1] |= fields
    return entry


OUTSIDE = [
    "skill://refunds/../a.md", "skill://refunds/%2e%2e/a.md", "skill://refunds/..%2Fa.md", "skill://refunds//a.md",
    "skill://refunds/./a.md", "skill://refunds/", "skill://other/a.md", "skill://refunds", "file:///etc/passwd",
    "skill://refunds/a%0ab.md", "skill://refunds/a%5cb.md", "skill://refunds/%2Fetc", f"skill://refunds/{'a' * 1_025}",
    "a.md", "urn:a.md", None, 3,
]  # fmt: skip


@pytest.mark.parametrize("uri", OUTSIDE)
def test_a_file_that_is_not_in_the_folder_of_its_skill_is_refused(uri: Any) -> None:
    with pytest.raises(BadToolError, match="not in its folder"):
        Skill.from_entry(changed(uri=uri))


@given(st.text(max_size=40))
def test_a_path_that_is_inside_leads_nowhere_else(path: str) -> None:
    if is_inside(path):
        steps = PurePosixPath("/folder", path).parts
        assert steps[:2] == ("/", "folder")
        assert ".." not in steps
        assert len(path.splitlines()) == 1


BAD_ENTRIES: list[tuple[dict[str, Any], str]] = [
    (changed(digest="sha256:abc"), "no digest"),
    (changed(digest=None), "no digest"),
    (changed(digest=f"sha256:{'a' * 65}"), "no digest"),
    (changed(digest=f"sha256:{'A' * 64}"), "no digest"),
    (changed(size=-1), "no size"),
    (changed(size=True), "no size"),
    (changed(size="1"), "no size"),
    (changed(uri="skill://refunds/SKILL.md"), "listed once"),
    (skill_entry("refunds") | {"resources": []}, "SKILL.md among them"),
    (skill_entry("refunds") | {"resources": None}, "SKILL.md among them"),
    (skill_entry("refunds") | {"resources": "static"}, "SKILL.md among them"),
    (skill_entry("refunds") | {"resources": [1]}, "not in its folder"),
    (skill_entry("refunds") | {"uri": "skill://refunds"}, "needs the 'uri'"),
    (skill_entry("refunds") | {"uri": None}, "needs the 'uri'"),
    (skill_entry("refunds") | {"uri": "skill:/refunds/SKILL.md"}, "a scheme and '://'"),
    (skill_entry("refunds") | {"uri": "refunds/SKILL.md"}, "a scheme and '://'"),
    (skill_entry("refunds") | {"uri": " skill://refunds/SKILL.md"}, "a scheme and '://'"),
    (skill_entry("refunds") | {"uri": "skill://other/SKILL.md"}, "not in a folder of its name"),
    (skill_entry("refunds") | {"frontmatter": "name: refunds"}, "needs the 'uri'"),
    ({}, "needs the 'uri'"),
]


@pytest.mark.parametrize(("entry", "reason"), BAD_ENTRIES)
def test_a_bad_entry_is_refused_with_a_reason(entry: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadToolError, match=reason):
        Skill.from_entry(entry)


def test_the_same_file_written_in_two_ways_is_listed_twice() -> None:
    with pytest.raises(BadToolError, match="listed once"):
        skill("refunds", {"a.md": b"x", "%61.md": b"x"})


def test_a_skill_may_be_as_large_as_every_host_has_to_take_and_no_larger() -> None:
    entry = skill_entry("refunds", {f"f{n}": b"" for n in range(MOST_FILES - 1)})
    entry["resources"][1]["size"] = MOST_BYTES - entry["resources"][0]["size"]
    assert len(Skill.from_entry(entry).files) == MOST_FILES

    entry["resources"][1]["size"] += 1
    with pytest.raises(BadToolError, match="16,777,217 bytes"):
        Skill.from_entry(entry)
    with pytest.raises(BadToolError, match="513 files"):
        skill("refunds", {f"f{n}": b"" for n in range(MOST_FILES)})


# ---- reading


def test_a_file_is_found_by_its_path_and_others_are_named_where_it_is_not_there() -> None:
    read = skill("refunds", {"references/a.md": b"", "references/b.md": b"", "c.md": b""})
    assert read.file("./c.md") is read.file("c.md")
    with pytest.raises(BadArgumentsError, match=r"no file 'd\.md'; it has SKILL\.md, references/a\.md"):
        read.file("d.md")
    with pytest.raises(BadArgumentsError, match=r"no file 'references/'; it has references/a\.md, references/b\.md$"):
        read.file("references/")
    with pytest.raises(BadArgumentsError, match="and 480 more"):
        skill("many", {f"{n}": b"" for n in range(499)}).file("x")


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "references/../../x", "c.md/../c.md", "C.MD"])
def test_nothing_but_a_listed_path_is_a_file(path: str) -> None:
    with pytest.raises(BadArgumentsError):
        skill("refunds", {"c.md": b""}).file(path)


def test_the_text_is_passed_on_word_for_word_under_a_line_that_says_whose_it_is() -> None:
    read = skill("refunds", {"b.md": b"12345", "a.md": b"x"})
    head, text = skill_output(read, read.file(SKILL_FILE), TEXT, origin="the MCP server acme").content

    assert head["text"] == (
        "SKILL.md of the skill 'refunds' from the MCP server acme; the user did not write it. "
        "Its other files; read them by their paths:\n- b.md (5 bytes)\n- a.md (1 bytes)"
    )
    assert text == {"type": "text", "text": TEXT.decode()}


def test_of_another_file_nothing_but_the_file_is_told() -> None:
    read = skill("refunds", {"b.md": b"12345", "a.md": b"x"})
    head, text = skill_output(read, read.file("a.md"), b"x", origin="the folder team").content
    assert head["text"] == "a.md of the skill 'refunds' from the folder team; the user did not write it."
    assert text["text"] == "x"


def test_a_long_list_of_files_is_cut_and_counted() -> None:
    read = skill("refunds", {f"{n}.md": b"" for n in range(150)})
    head = str(skill_output(read, read.file(SKILL_FILE), TEXT, origin="x").content[0]["text"])
    assert head.splitlines()[-2:] == ["- 99.md (0 bytes)", "- and 50 more"]


def test_long_names_of_files_are_cut_and_counted_wherever_they_are_listed() -> None:
    read = skill("refunds", {f"{n:03}{'x' * 900}": b"" for n in range(100)})
    head = str(skill_output(read, read.file(SKILL_FILE), TEXT, origin="x").content[0]["text"])
    assert head.splitlines()[-1] == "- and 96 more"
    assert len(head) < 5_000
    with pytest.raises(BadArgumentsError, match="and 96 more") as raised:
        read.file("other")
    assert len(str(raised.value)) < 5_000


def test_bytes_that_are_no_text_are_a_resource_of_bytes() -> None:
    data = b"\x89PNG\xff"
    read = skill("refunds", {"a.png": data})
    block = skill_output(read, read.file("a.png"), data, origin="x").content[1]
    assert block["resource"]["uri"] == "skill://refunds/a.png"
    assert base64.b64decode(block["resource"]["blob"]) == data


@given(st.binary(max_size=30))
def test_of_a_file_that_differs_from_its_manifest_nothing_is_passed_on(data: bytes) -> None:
    read = skill("refunds", {"a.md": b"the listed text"})
    with pytest.raises(ChangedSkillError) as raised:
        skill_output(read, read.file("a.md"), data, origin="x")
    assert "a.md" in str(raised.value)
    assert len(data) < 4 or data.decode(errors="replace") not in str(raised.value)


def test_a_file_of_the_same_size_with_another_byte_is_refused() -> None:
    read = skill("refunds", {"a.md": b"send 10 euros"})
    with pytest.raises(ChangedSkillError):
        skill_output(read, read.file("a.md"), b"send 90 euros", origin="x")


def test_a_file_of_another_size_is_refused_even_if_its_digest_is_right() -> None:
    entry = changed(size=2)
    read = Skill.from_entry(entry)
    with pytest.raises(ChangedSkillError):
        read.require_same(read.file("a.md"), b"x")


@pytest.mark.parametrize(
    "text",
    [
        skill_text("refunds", "Does something else"),
        skill_text("refunds", more="allowed-tools: Bash\n"),
        "no frontmatter",
        "\udcff",
    ],
)
def test_a_skill_whose_frontmatter_is_not_the_listed_one_is_refused_though_its_digest_is_right(text: str) -> None:
    data = text.encode(errors="surrogateescape")
    entry = skill_entry("refunds")
    entry["resources"][0] |= {"digest": digest_of(data), "size": len(data)}
    read = Skill.from_entry(entry)
    with pytest.raises(ChangedSkillError):
        skill_output(read, read.file(SKILL_FILE), data, origin="x")


def test_values_of_a_frontmatter_are_compared_as_json_where_one_is_not_true() -> None:
    data = skill_text("refunds", more="flag: true\n").encode()
    entry = skill_entry("refunds")
    entry["frontmatter"]["flag"] = 1
    entry["resources"][0] |= {"digest": digest_of(data), "size": len(data)}
    read = Skill.from_entry(entry)
    with pytest.raises(ChangedSkillError):
        read.require_same(read.file(SKILL_FILE), data)


def bomb(scalar: int, lists: int) -> str:
    """Lines of a frontmatter that stand for nine texts to the power of *lists*."""
    return f"a0: &a0 {'z' * scalar}\n" + "".join(
        f"a{each}: &a{each} [{', '.join([f'*a{each - 1}'] * 9)}]\n" for each in range(1, lists + 1)
    )


@pytest.mark.parametrize(
    "more", [bomb(30_000, 5), bomb(1, 6), f"deep: {'[' * 60}1{']' * 60}\n"], ids=["long", "many", "deep"]
)
def test_a_frontmatter_that_is_larger_than_its_text_is_refused_before_it_is_written_out(more: str) -> None:
    data = skill_text("refunds", more=more).encode()
    entry = skill_entry("refunds")
    entry["resources"][0] |= {"digest": digest_of(data), "size": len(data)}
    read = Skill.from_entry(entry)
    tracemalloc.start()
    try:
        with pytest.raises(ChangedSkillError):
            read.require_same(read.file(SKILL_FILE), data)
        with pytest.raises(BadToolError, match="too long or nested"):
            split_frontmatter(data.decode())
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


# ---- entries of a catalog


def test_what_else_a_skill_says_is_searched_and_bounded() -> None:
    front = {"name": "a", "description": "Does", "tags": ["money", {"of": "shops"}], "deep": {"more": ["x", 3, None]}}
    skill = Skill("skill://a/SKILL.md", front)

    assert skill.definition("t__a", "t").text == "money\nshops\nx"
    assert skill.definition("t__a", "t", "# Do it\n").text == "money\nshops\nx\n# Do it"
    assert skill.definition("t__a", "t", "word " * 10_000).text == ("money\nshops\nx\n" + "word " * 400)[:2_000].strip()
    assert skill.definition("t__a", "t").description == "Does"


def test_a_deep_frontmatter_is_read_without_recursion() -> None:
    deep: Any = "bottom"
    for _ in range(10_000):
        deep = [deep]
    assert Skill("skill://a/SKILL.md", {"name": "a", "description": "Does", "deep": deep}).definition("a", "").text == (
        "bottom"
    )


def test_the_manifest_of_an_entry_is_what_its_server_listed() -> None:
    entry = skill_entry("refunds")
    definition = Skill.from_entry(entry).definition("acme__refunds", "acme")
    listed = Tool(definition, origin=ToolOrigin("acme", str(entry["uri"]), entry))
    assert skill_of(listed) == Skill.from_entry(entry)


def test_what_is_no_skill_has_no_manifest() -> None:
    entry = skill_entry("refunds")
    origin = ToolOrigin("acme", "refunds", entry)
    assert skill_of(Tool(ToolDefinition("acme__refunds"), origin=origin)) is None
    assert skill_of(content("acme__refunds")) is None
