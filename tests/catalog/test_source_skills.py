"""A folder of skills as a source: what is a skill, what is refused and why, and how its files are read."""

import errno
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.skills import read, skill_text, text_of, write_skill
from toolsearch import Catalog, ToolSearch
from toolsearch.catalog.loading import open_source
from toolsearch.catalog.source import LoadReport
from toolsearch.catalog.sources import skills as skills_module
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.documents.skills import MOST_FILES, SKILL_FILE, Skill, skill_of
from toolsearch.errors import BadArgumentsError, ChangedSkillError, SourceError
from toolsearch.tools.definition import Tool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder named skills with one skill in it, which nothing may hurt."""
    write_skill(tmp_path / "skills", "good", "Is good")
    return tmp_path / "skills"


def load(folder: Path, server: str = "") -> LoadReport:
    return SkillsSource(folder, server=server).load()


def names(report: LoadReport) -> list[str]:
    return [tool.name for tool in report.tools]


def reason(report: LoadReport, name: str) -> str:
    """Why the skill *name* was refused; the good one was not."""
    [refused] = [each for each in report.refused if each.name == name]
    assert "skills__good" in names(report)
    assert refused.source
    return refused.reason


def only(report: LoadReport) -> Tool:
    [tool] = report.tools
    return tool


def manifest(tool: Tool) -> Skill:
    found = skill_of(tool)
    assert found is not None
    return found


# ---- what is a skill, and what it is called


def test_each_folder_with_a_skill_file_is_a_skill_of_the_folder(folder: Path) -> None:
    write_skill(folder / "billing", "refunds", "Refund a customer", files={"references/policy.md": "Pay."})
    (folder / "billing" / "README.md").write_text("No skill")
    report = load(folder)

    assert names(report) == ["skills__refunds", "skills__good"]
    assert report.refused == ()
    refunds = report.tools[0]
    assert refunds.definition.description == "Refund a customer"
    assert (refunds.definition.kind, refunds.definition.server, refunds.definition.title) == (
        "skill",
        "skills",
        "refunds",
    )
    assert refunds.source == str(folder / "billing/refunds/SKILL.md")
    assert manifest(refunds).uri == "skill://billing/refunds/SKILL.md"
    assert list(manifest(refunds).files) == ["SKILL.md", "references/policy.md"]


def test_a_name_in_front_is_the_name_of_the_server(folder: Path) -> None:
    catalog = Catalog()
    report = catalog.load(f"team=skills:{folder}")
    assert names(report) == ["team__good"]
    assert only(report).spec == f"team=skills:{folder}"
    assert "from the folder team" in str(read(only(report)).content[0]["text"])


def test_a_folder_without_its_kind_in_front_says_how_to_write_it(folder: Path) -> None:
    with pytest.raises(SourceError, match=f"if it holds skills, write skills:{folder}"):
        open_source(str(folder))


def test_a_folder_is_found_again_from_any_working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert only(Catalog().load("skills:./skills")).spec == f"skills:{folder}"
    monkeypatch.setenv("HOME", str(folder.parent))
    assert only(Catalog().load("skills:~/skills")).spec == f"skills:{folder}"


def test_a_folder_that_is_a_skill_itself_is_taken_with_what_is_nested_in_it(folder: Path) -> None:
    write_skill(folder / "good", "inner")
    report = load(folder / "good")
    assert names(report) == ["good__good", "good__inner"]
    assert [manifest(tool).uri for tool in report.tools] == ["skill://good/SKILL.md", "skill://good/inner/SKILL.md"]


def test_a_nested_skill_is_a_skill_and_its_files_are_files_of_the_other_too(folder: Path) -> None:
    write_skill(folder / "good" / "parts", "inner", files={"a.md": "a"})
    outer, inner = load(folder).tools

    assert list(manifest(outer).files) == ["SKILL.md", "parts/inner/SKILL.md", "parts/inner/a.md"]
    assert list(manifest(inner).files) == ["SKILL.md", "a.md"]
    assert text_of(read(outer, file="parts/inner/a.md")) == text_of(read(inner, file="a.md")) == "a"


def test_skills_of_one_name_are_told_apart_by_the_folders_above_them(folder: Path) -> None:
    for above in ("", "acme/billing", "acme/support", "other/support"):
        write_skill(folder / above, "refunds")
    assert names(load(folder)) == [
        "skills__acme_billing_refunds", "skills__acme_support_refunds", "skills__good", "skills__other_support_refunds",
        "skills__refunds",
    ]  # fmt: skip


def test_as_few_folders_are_named_as_tell_skills_apart(folder: Path) -> None:
    for above in ("acme/billing", "acme/support"):
        write_skill(folder / above, "refunds")
    assert names(load(folder)) == ["skills__billing_refunds", "skills__support_refunds", "skills__good"]


def test_a_nested_skill_of_the_name_of_its_own_outer_one_does_not_shadow_it(folder: Path) -> None:
    write_skill(folder / "good" / "more", "good", "Is better")
    assert {tool.name: tool.definition.description for tool in load(folder).tools} == {
        "skills__good": "Is good",
        "skills__more_good": "Is better",
    }


def test_a_skill_of_a_name_that_is_taken_is_refused_and_shadows_nothing(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "skills"
    write_skill(other, "good", "Is another")
    write_skill(other, "more")
    catalog = Catalog()
    catalog.load(f"skills:{folder}")
    report = catalog.load(f"skills:{other}")

    assert names(report) == ["skills__more"]
    assert [each.name for each in report.refused] == ["skills__good"]
    assert str(other) in report.refused[0].reason
    assert catalog.contents["skills__good"].definition.description == "Is good"


def test_a_file_is_told_by_the_name_that_it_has_and_by_a_uri_that_is_one(folder: Path) -> None:
    write_skill(folder / "my team", "odd", files={"ein Bär #1?.md": "x"})
    odd = next(tool for tool in load(folder).tools if tool.name == "skills__odd")
    file = manifest(odd).file("ein Bär #1?.md")
    assert file.uri == "skill://my%20team/odd/ein%20B%C3%A4r%20%231%3F.md"
    assert Skill.from_entry(manifest(odd).entry()) == manifest(odd)


# ---- what is refused


def test_a_folder_without_a_skill_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    with pytest.raises(SourceError, match=r"holds no skill: no folder in it has a SKILL\.md"):
        load(tmp_path)


def test_a_folder_that_is_not_there_or_is_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(SourceError, match="Not a directory"):
        load(tmp_path / "file")


def test_an_empty_folder_beside_skills_is_nothing(folder: Path) -> None:
    (folder / "empty").mkdir()
    assert load(folder).refused == ()


def test_a_skill_in_a_folder_of_another_name_is_refused(folder: Path) -> None:
    write_skill(folder, "refund").rename(folder / "refunds")
    assert reason(load(folder), "refunds") == (
        "the folder is named 'refunds' and the skill 'refund'; both need the same name"
    )


def test_a_skill_of_a_name_in_capitals_is_refused_beside_that_in_small_letters(folder: Path) -> None:
    (folder / "Good").mkdir()
    (folder / "Good" / "SKILL.md").write_text(skill_text("Good"))
    assert "a skill's name has" in reason(load(folder), "Good")


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no frontmatter", "begins with '---'"),
        (f"---\nname: bad\ndescription: x\n{BOMB}---\n", "nodes"),
        ("---\nname: bad\n---\n", "no description"),
        ("---\nname: [bad\n---\n", "no YAML"),
        (b"---\nname: bad\ndescription: \xff\n---\n", "not UTF-8"),
        (b"", "begins with '---'"),
    ],
)
def test_a_bad_skill_file_is_refused_with_a_reason(folder: Path, content: str | bytes, said: str) -> None:
    write_skill(folder, "bad", files={"SKILL.md": content})
    assert said in reason(load(folder), "bad")


def test_a_skill_file_of_ten_megabytes_is_refused(folder: Path) -> None:
    write_skill(folder, "bad", files={"SKILL.md": skill_text("bad", body="x" * 10_000_000)})
    assert reason(load(folder), "bad") == "SKILL.md has more than 1,048,576 bytes, and that is too many"


def test_a_skill_of_five_thousand_files_is_refused_before_any_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(folder, "bad", files={f"{n}.md": b"" for n in range(5_000)})
    opened: list[Path] = []
    really = os.open

    def note(path: Path, flags: int) -> int:
        opened.append(path)
        return really(path, flags)

    with monkeypatch.context() as patched:  # what clears the folder up opens it with more arguments
        patched.setattr(os, "open", note)
        assert reason(load(folder), "bad").startswith("the skill has 5,001 files")
    assert opened == [folder / "good" / "SKILL.md"]


def test_a_skill_of_more_bytes_than_hosts_take_is_refused(folder: Path) -> None:
    own = write_skill(folder, "bad")
    for n in range(3):
        with (own / f"{n}.bin").open("wb") as file:
            file.truncate(6 * 1024 * 1024)
    assert "4 files and 18,874,4" in reason(load(folder), "bad")


def test_as_many_files_as_every_host_takes_are_taken(folder: Path) -> None:
    write_skill(folder, "large", files={f"{n}.md": b"" for n in range(MOST_FILES - 1)})
    assert len(manifest(load(folder).tools[1]).files) == MOST_FILES


def test_a_whole_disk_is_not_looked_through(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skills_module, "_MOST_ENTRIES", 3)
    load(folder)
    for n in range(2):
        (folder / f"{n}").mkdir()
    with pytest.raises(SourceError, match="more than 3 files; give the folder of the skills"):
        load(folder)


@pytest.mark.parametrize("target", ["/etc", "/etc/hostname", ".", "..", "../good/SKILL.md", "SKILL.md", "nowhere"])
def test_a_link_in_a_skill_is_not_followed_and_the_skill_refused(folder: Path, target: str) -> None:
    (write_skill(folder, "bad") / "link").symlink_to(target)
    assert reason(load(folder), "bad") == "link: symbolic links are not followed; put a copy there"


def test_a_link_to_a_folder_of_skills_or_to_a_skill_file_is_not_followed(folder: Path, tmp_path: Path) -> None:
    write_skill(tmp_path / "elsewhere", "other")
    (folder / "other").symlink_to(tmp_path / "elsewhere" / "other")
    (folder / "cycle").symlink_to(folder)
    (folder / "half").mkdir()
    (folder / "half" / "SKILL.md").symlink_to(tmp_path / "elsewhere" / "other" / "SKILL.md")
    report = load(folder)

    assert names(report) == ["skills__good"]
    assert [each.name for each in report.refused] == ["cycle", "half/SKILL.md", "other"]
    assert "not followed" in reason(report, "other")


def test_a_pipe_in_a_skill_makes_nobody_wait(folder: Path) -> None:
    os.mkfifo(write_skill(folder, "bad") / "pipe")
    assert reason(load(folder), "bad") == "pipe is no file"


def test_what_may_not_be_read_costs_its_own_skill(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system has it for everybody but the administrator, who may be running this."""
    write_skill(folder, "bad", files={"a.md": "x"})
    write_skill(folder, "worse", files={"b/c.md": "x"})
    (folder / "closed").mkdir()

    def guarded(given: Callable[..., Any], *closed: str) -> Callable[..., Any]:
        def guard(path: Path, *more: Any) -> Any:
            if str(path).removesuffix("/").endswith(closed):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return given(path, *more)

        return guard

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", guarded(os.open, "bad/a.md"))
        patched.setattr(os, "scandir", guarded(os.scandir, "worse/b", "closed"))
        report = load(folder)
    assert reason(report, "bad") == "a.md cannot be read: Permission denied"
    assert reason(report, "worse") == "b/: the folder cannot be read: Permission denied"
    assert reason(report, "closed") == "the folder cannot be read: Permission denied"


@pytest.mark.parametrize("name", ["skill.md", "Skill.md", "SKILL.MD"])
def test_a_skill_file_in_other_letters_is_refused_with_how_to_name_it(folder: Path, name: str) -> None:
    (folder / "bad").mkdir()
    (folder / "bad" / name).write_text(skill_text("bad"))
    assert reason(load(folder), "bad") == f"{name} has to be named SKILL.md"


def test_files_that_differ_only_in_case_are_refused(folder: Path) -> None:
    write_skill(folder, "bad", files={"a/Readme.md": "x", "A/README.md": "y"})
    assert "are one file where upper and lower case are the same" in reason(load(folder), "bad")


@pytest.mark.parametrize(("name", "told"), [(b"bad\xff", r"bad\udcff"), (b"ba\nd", "ba\nd")])
def test_a_name_that_is_no_line_of_text_is_refused(folder: Path, name: bytes, told: str) -> None:
    own = folder / os.fsdecode(name)
    own.mkdir()
    (own / "SKILL.md").write_text(skill_text("bad"))
    assert "cannot be written in one line of text" in reason(load(folder), told)


def test_hidden_files_and_what_programs_leave_behind_are_no_part_of_a_skill(folder: Path) -> None:
    write_skill(folder / ".hidden", "secret")
    write_skill(folder / "good" / "node_modules", "dependency")
    own = folder / "good"
    (own / ".env").write_text("KEY=1")
    (own / "__pycache__").mkdir()
    (own / "__pycache__" / "a.pyc").write_bytes(b"x")
    (own / ".link").symlink_to("/etc")
    report = load(folder)

    assert names(report) == ["skills__good"]
    assert report.refused == ()
    assert list(manifest(only(report)).files) == ["SKILL.md"]
    with pytest.raises(BadArgumentsError, match="no file"):
        read(only(report), file=".env")


def test_a_broken_nested_skill_leaves_its_outer_one_whole(folder: Path) -> None:
    write_skill(folder / "good", "inner", files={"SKILL.md": "no frontmatter"})
    report = load(folder)
    assert "begins with" in reason(report, "good/inner")
    assert text_of(read(only(report), file="inner/SKILL.md")) == "no frontmatter"


# ---- reading


def test_a_skill_file_is_read_unless_another_is_asked_for(folder: Path) -> None:
    write_skill(folder, "refunds", files={"a.md": "The policy"})
    refunds = load(folder).tools[1]
    output = read(refunds)
    assert output.content[0]["text"] == (
        "SKILL.md of the skill 'refunds' from the folder skills; the user did not write it. "
        "Its other files; read them by their paths:\n- a.md (10 bytes)"
    )
    assert text_of(output) == skill_text("refunds")
    assert text_of(read(refunds, file="a.md")) == text_of(read(refunds, file="./a.md")) == "The policy"
    assert read(refunds, file="") == output


def test_the_instructions_are_searched_and_no_part_of_what_a_search_shows(folder: Path) -> None:
    write_skill(folder, "quiet", files={SKILL_FILE: skill_text("quiet", "Helps", body="Feed the walrus with herring.")})
    write_skill(folder, "other", files={SKILL_FILE: skill_text("other", "Helps", body="Water the plants.")})

    with ToolSearch(Catalog(load(folder).tools)) as engine:
        found = engine.search("feed the walrus with herring", limit=5)
        shown = engine.session("s").call_sync("toolSearchTool", {"queries": ["feed the walrus with herring"]}).text

    assert [each.name for each in found] == ["skills__quiet"]
    assert "skills__quiet" in shown
    assert "Water" not in shown
    assert "Feed the walrus" not in shown + found[0].summary


def test_instructions_that_have_changed_are_searched_anew(folder: Path) -> None:
    place = write_skill(folder, "quiet", "Helps") / SKILL_FILE
    with Catalog(load(folder).tools) as catalog, ToolSearch(catalog) as engine:
        assert engine.search("feed the walrus") == []
        place.write_text(skill_text("quiet", "Helps", body="Feed the walrus."), encoding="utf-8")
        catalog.put(*load(folder).tools)
        assert [each.name for each in engine.search("feed the walrus", limit=1)] == ["skills__quiet"]


@pytest.mark.parametrize("path", ["../good/SKILL.md", "/etc/passwd", "a.md/../a.md", "..", "b.md"])
def test_nothing_outside_of_the_skill_is_read(folder: Path, path: str) -> None:
    write_skill(folder, "refunds", files={"a.md": "x"})
    with pytest.raises(BadArgumentsError, match="has no file"):
        read(load(folder).tools[1], file=path)


def test_a_file_that_has_changed_or_gone_since_the_load_is_not_passed_on(folder: Path) -> None:
    own = write_skill(folder, "refunds", files={"a.md": "old", "b.md": "old", "c.md": "old", "d.md": "old"})
    refunds = load(folder).tools[1]
    (own / "a.md").write_text("new")
    (own / "b.md").write_text("much longer than before")
    (own / "c.md").unlink()
    (own / "d.md").unlink()
    (own / "d.md").symlink_to(own / "b.md")
    for path in ("a.md", "b.md", "c.md", "d.md"):
        with pytest.raises(ChangedSkillError, match="has changed since it was listed") as raised:
            read(refunds, file=path)
        assert raised.value.__cause__ is None


def test_a_link_that_takes_the_place_of_a_file_is_not_followed_even_to_the_same_bytes(
    folder: Path, tmp_path: Path
) -> None:
    own = write_skill(folder, "refunds", files={"a.md": "same"})
    (tmp_path / "outside.md").write_text("same")
    refunds = load(folder).tools[1]
    (own / "a.md").unlink()
    (own / "a.md").symlink_to(tmp_path / "outside.md")
    with pytest.raises(ChangedSkillError):
        read(refunds, file="a.md")


def test_a_skill_that_is_loaded_anew_is_read_as_it_is_now(folder: Path) -> None:
    (folder / "good" / "SKILL.md").write_text(skill_text("good", body="New."))
    assert "New." in text_of(read(only(load(folder))))


def test_a_skill_of_a_copied_catalog_is_read(folder: Path) -> None:
    catalog = Catalog()
    catalog.load(f"skills:{folder}")
    copy: Catalog = pickle.loads(pickle.dumps(catalog))  # noqa: S301  made here
    assert text_of(read(copy.contents["skills__good"])) == skill_text("good", "Is good")


async def test_a_skill_of_a_stored_catalog_is_read_from_its_folder(folder: Path, tmp_path: Path) -> None:
    catalog = Catalog()
    catalog.load(f"skills:{folder}")
    ToolSearch(catalog, index_dir=tmp_path / "index", encoder=None).close()
    with ToolSearch.open(tmp_path / "index") as engine:
        stored = engine.catalog.contents["skills__good"]
        assert manifest(stored) == manifest(catalog.contents["skills__good"])
        assert stored.callback is not None
        assert "Do it." in text_of(await stored.callback.call({}, {}))  # type: ignore[arg-type, misc]
