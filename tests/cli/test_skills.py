"""Skills on the command line: found, shown, listed, read, and written requests for."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.commands import Ran
from tests.kit.skills import skill_text, write_skill

LISTING = [
    {"name": "refund", "description": "Refund a payment of a customer", "parameters": {"type": "object"}},
    {"name": "charge", "description": "Charge a card", "parameters": {"type": "object"}},
]


@pytest.fixture
def run(command: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run a command where there are two skills, a broken one, and a listing of tools."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLSEARCH_INDEX__STRATEGY", "keyword")
    write_skill(tmp_path / "skills", "refunds", "Refund a customer", files={"references/policy.md": "Pay it back."})
    write_skill(tmp_path / "skills", "onboarding", "Welcome a new customer")
    write_skill(tmp_path / "skills", "broken", files={"SKILL.md": "no frontmatter"})
    (tmp_path / "tools.json").write_text(json.dumps(LISTING))
    return command


@pytest.fixture
def indexed(run: Callable[..., Ran]) -> Callable[..., Ran]:
    assert run("index", "skills:./skills", "tools.json").code == 0
    return run


def test_indexing_counts_each_kind(run: Callable[..., Ran]) -> None:
    shown = run("index", "skills:./skills", "tools.json")
    assert "2 tools, 2 skills, " in shown.out
    assert shown.out.split()[:5] == ["source", "tools", "skills", "refused", "time"]
    assert "1 could not be taken" in shown.out

    report = run("index", "skills:./skills", "tools.json", "--json").json
    assert (report["tools"], report["contents"]) == (2, {"skill": 2})
    assert [(each["tools"], each["contents"]) for each in report["sources"]] == [(0, {"skill": 2}), (2, {})]
    assert [each["name"] for each in report["refused"]] == ["broken"]


def test_without_skills_nothing_is_told_of_them(run: Callable[..., Ran]) -> None:
    assert "skill" not in run("index", "tools.json").out
    assert "skill" not in run("sources").out
    assert run("search", "refund").out.split()[:2] == ["tool", "score"]


def test_skills_alone_are_enough_for_an_index(run: Callable[..., Ran]) -> None:
    assert run("index", "skills:./skills").code == 0
    assert run("sources", "skills:./skills").code == 0
    assert run("search", "refund").code == 0


def test_a_folder_without_skills_is_an_error_that_says_so(run: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = run("index", "skills:./empty")
    assert ran.code == 3
    assert ran.err.endswith("empty holds no skill: no folder in it has a SKILL.md\n")
    assert "if it holds skills, write skills:empty" in run("search", "x", "--source", "empty").err


def test_a_search_finds_tools_and_skills_and_says_which_is_which(indexed: Callable[..., Ran]) -> None:
    ran = indexed("search", "refund a customer")
    assert ran.out.split()[:3] == ["name", "kind", "score"]
    found = indexed("search", "refund a customer", "--json").json["results"]
    assert {(each["name"], each["kind"]) for each in found[:2]} == {("refund", "tool"), ("skills__refunds", "skill")}


def test_a_search_for_a_kind_finds_nothing_else(indexed: Callable[..., Ran]) -> None:
    def found(*options: str) -> set[str]:
        return {each["kind"] for each in indexed("search", "refund", "--all", "--json", *options).json["results"]}

    assert found("--kind", "skill") == {"skill"}
    assert found("--kind", "tool") == {"tool"}
    assert found("--kind", "tool", "--kind", "skill") == {"tool", "skill"}
    assert found("--deny", "kind:skill") == {"tool"}
    assert found("--allow", "kind:skill") == {"skill"}
    nothing = indexed("search", "refund", "--kind", "prompt")
    assert (nothing.code, nothing.out) == (1, "")


def test_a_kind_that_there_is_not_is_an_error_with_those_that_there_are(indexed: Callable[..., Ran]) -> None:
    ran = indexed("search", "refund", "--kind", "skills")
    assert ran.code == 2
    assert "tool, skill, prompt, resource" in ran.err


def test_a_rule_about_a_kind_that_nothing_has_is_warned_of(indexed: Callable[..., Ran]) -> None:
    ran = indexed("search", "refund", "--allow", "kind:prompt")
    assert "no tool matches --allow kind:prompt; there are: skill, tool" in ran.err
    assert "warning" not in indexed("search", "refund", "--allow", "skills__*").err


def test_a_skill_is_selected_by_its_name_and_a_mistyped_one_suggested(indexed: Callable[..., Ran]) -> None:
    assert [each["name"] for each in indexed("search", "select:skills__refunds", "--json").json["results"]] == [
        "skills__refunds"
    ]
    assert "did you mean skills__refunds" in indexed("search", "select:skills__refnds").err


def test_a_skill_is_explained(indexed: Callable[..., Ran]) -> None:
    answer = indexed("search", "refund a customer", "--tool", "skills__refunds", "--json").json
    [explained] = answer["explained"]
    assert (explained["name"], explained["outcome"], explained["place"]) == ("skills__refunds", "found", 1)


@pytest.mark.parametrize("source", [[], ["--source", "skills:./skills"]])
def test_a_skill_is_shown_with_its_frontmatter_its_files_and_where_it_is_from(
    indexed: Callable[..., Ran], source: list[str]
) -> None:
    facts = indexed("show", "skills__refunds", "--json", *source).json
    assert facts["kind"] == "skill"
    assert facts["uri"] == "skill://refunds/SKILL.md"
    assert facts["frontmatter"] == {"name": "refunds", "description": "Refund a customer"}
    assert [(each["path"], each["size"]) for each in facts["files"]] == [("SKILL.md", 60), ("references/policy.md", 12)]
    assert facts["source"] == "skills/refunds/SKILL.md"
    assert "tokens" not in facts

    shown = indexed("show", "skills__refunds", *source).out
    for text in (
        "skill",
        "skill://refunds/SKILL.md",
        "references/policy.md",
        "12 B",
        "frontmatter",
        "Refund a customer",
    ):
        assert text in shown
    assert "input schema" not in shown


def test_a_tool_is_shown_as_before_beside_skills(indexed: Callable[..., Ran]) -> None:
    facts = indexed("show", "refund", "--json").json
    assert facts["kind"] == "tool"
    assert facts["tokens"] > 0
    assert {"uri", "files", "frontmatter"}.isdisjoint(facts)
    assert "kind" not in indexed("show", "refund").out


def test_what_is_not_there_is_an_error_with_names_like_it(indexed: Callable[..., Ran]) -> None:
    for command in ("show", "call"):
        ran = indexed(command, "skills__refund")
        assert ran.code == 1
        assert "did you mean skills__refunds" in ran.err


def test_sources_list_skills_and_why_one_was_refused(indexed: Callable[..., Ran], tmp_path: Path) -> None:
    kept = indexed("sources", "--json").json
    assert (kept["tools"], kept["contents"]) == (2, {"skill": 2})
    assert {(each["source"], each["tools"], each["contents"].get("skill")) for each in kept["sources"]} == {
        ("tools.json", 2, None),
        (f"skills:{tmp_path}/skills", 0, 2),
    }
    assert "begins with '---'" in kept["refused"][0]["reason"]
    now = indexed("sources", "skills:./skills", "--json").json
    assert (now["tools"], now["contents"], now["sources"][0]["contents"]) == (0, {"skill": 2}, {"skill": 2})
    assert "skills" in indexed("sources").out.split()


@pytest.mark.parametrize("source", [[], ["--source", "skills:./skills"]])
def test_a_skill_is_read_as_a_tool_is_called(indexed: Callable[..., Ran], source: list[str]) -> None:
    ran = indexed("call", "skills__refunds", *source)
    assert ran.code == 0
    assert ran.out == (
        "SKILL.md of the skill 'refunds' from the folder skills; the user did not write it. Its other files; read "
        f"them by their paths:\n- references/policy.md (12 bytes)\n{skill_text('refunds', 'Refund a customer')}\n"
    )
    assert indexed("call", "skills__refunds", "file=references/policy.md", *source).out.endswith("Pay it back.\n")


def test_a_file_that_a_skill_has_not_is_an_error(indexed: Callable[..., Ran]) -> None:
    missing = indexed("call", "skills__refunds", "file=../onboarding/SKILL.md")
    assert (missing.code, missing.out) == (2, "")
    assert missing.err.startswith("error [bad_arguments]: the skill 'refunds' has no file")


def test_the_server_of_skills_is_named_in_front(run: Callable[..., Ran]) -> None:
    found = run("search", "refund", "--source", "team=skills:./skills", "--json").json["results"]
    assert [each["name"] for each in found] == ["team__refunds"]
    of_team = run("search", "customer", "--server", "team", "--source", "team=skills:./skills", "--json").json[
        "results"
    ]
    assert {each["name"] for each in of_team} == {"team__onboarding", "team__refunds"}


def test_requests_are_planned_for_skills_as_for_tools(run: Callable[..., Ran]) -> None:
    plan = run("enrich", "skills:./skills", "tools.json", "--out", "r.jsonl", "--dry-run", "--json").json
    assert plan["tools"] == 4
    only = run(
        "enrich", "skills:./skills", "tools.json", "--out", "r.jsonl", "--dry-run", "--allow", "kind:skill", "--json"
    )
    assert only.json["tools"] == 2
