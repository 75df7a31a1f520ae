"""The benchmark of skills counts what it says: shares worked by hand, over tools and skills of its own."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import skills
from benchmarks.abstention import Unanswerable
from benchmarks.labelled import LabelledQuery, LabelledSet
from tests.kit.skills import skill_text

TOOLS = {"mail/send": "Send an email message.", "bill.pay": "Pay a bill with money.", "add": "Add two numbers."}
LABELLED = LabelledSet(
    "small",
    [{"id": name, "description": text, "input_schema": {}} for name, text in TOOLS.items()],
    [LabelledQuery(text, frozenset([name])) for name, text in TOOLS.items()],
)
NOTHING = [Unanswerable("small", "qwrt zxcv", "gibberish"), Unanswerable("another", "weather", "no_tool")]
SKILLS = {
    "s1": ("refund-customer", "Pay a customer's money back for an order"),
    "s2": ("write-letter", "Write a letter of complaint to a company"),
    "s3": ("plan-garden", "Plan a garden with vegetables and flowers"),
}
REQUESTS = {"refund a customer for an order": "s1", "a letter of complaint": "s2", "which vegetables to plant": "s3"}


def written(folder: Path) -> tuple[Path, Path]:
    rows = [{"id": key, "name": name, "text": skill_text(name, text)} for key, (name, text) in SKILLS.items()]
    asked = [{"request": text, "ids": [key]} for text, key in REQUESTS.items()]
    return _lines(folder / "skills.jsonl", rows), _lines(folder / "requests.jsonl", asked)


def _lines(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_one_half_of_the_skills_is_loaded_with_the_requests_for_it(tmp_path: Path) -> None:
    with skills.loaded(*written(tmp_path), "odd") as odd, skills.loaded(*written(tmp_path), "even") as even:
        assert [skill.name for skill in odd.skills] == ["skills__refund-customer", "skills__plan-garden"]
        assert [request.text for request in odd.requests] == [*REQUESTS][::2]
        assert [request.relevant for request in even.requests] == [frozenset(["skills__write-letter"])]


def test_a_set_is_cut_to_the_tools_of_its_queries_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skills, "_MOST_TOOLS", 2)
    labelled = LabelledSet("small", LABELLED.tools, LABELLED.queries[1:2])

    beside = skills.catalog_of(labelled, NOTHING)

    assert [tool.name for tool in beside.tools] == ["mail_send", "bill_pay"]
    assert [(query.text, query.relevant) for query in beside.queries] == [
        ("Pay a bill with money.", frozenset(["bill_pay"]))
    ]
    assert beside.nothing == NOTHING[:1]


def test_tools_and_skills_are_found_beside_each_other_and_the_tables_say_so(tmp_path: Path) -> None:
    with skills.loaded(*written(tmp_path), None) as material:
        figures = skills.measure(material, [skills.catalog_of(LABELLED, NOTHING)])

    found, mean = figures["tools"]
    assert mean == found | {"set": "mean"}
    assert (found["tools"], found["skills"], found["asked"]) == (3, 3, 3)
    assert (found["recall_1"], found["recall_5"], found["recall_5_beside"]) == (1, 1, 1)
    assert [(row["beside"], row["right_5"]) for row in figures["skills"]] == [("", 1), ("small", 1), ("mean", 1)]
    assert (figures["nothing"][0]["asked"], figures["nothing"][0]["answered_beside"]) == (1, 0)
    assert figures["answers"][0]["loaded_beside"] == 1
    assert figures["answers"][0]["skills_named"] == 1
    assert figures["costs"]["skills"] == 3
    tables = skills.page_tables(figures)
    assert tables["skills, tools"][2] == "| small | 3 | 3 | 1.000 | 1.000 | 1.000 | 1.000 | 0.000 |"
    assert tables["skills, found"][2] == "| no tools | 0 | 1.000 | 1.000 |"


def test_without_its_material_the_benchmark_says_what_to_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        skills.main([str(tmp_path / "skills.jsonl"), str(tmp_path / "requests.jsonl")])

    assert "skills.jsonl; python -m benchmarks.skills --help says what it holds" in capsys.readouterr().err
