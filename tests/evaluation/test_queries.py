"""Files of labelled queries: what is taken, and what is wrong with each line that is not."""

from pathlib import Path

import pytest

from toolsearch import Catalog, Reach, ToolSearch
from toolsearch.errors import BadQueryError
from toolsearch.evaluation import LabelledQuery, read_queries
from toolsearch.evaluation.queries import QueryFile, write_queries
from toolsearch.tools.definition import ToolDefinition

A, B = frozenset({"alpha"}), frozenset({"beta"})


@pytest.fixture
def read(tmp_path):
    """Read *content* as a file of that name, for an engine with the tools alpha and beta."""
    engine = ToolSearch(Catalog([ToolDefinition("alpha", "First"), ToolDefinition("beta", "Second")]))

    def read(name: str, content: str | bytes, **options: Reach) -> QueryFile:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_queries(path, engine, **options)

    return read


def test_json_lines_say_the_tools_in_any_of_three_ways(read):
    lines = [
        '{"query": "one", "relevant": ["alpha"], "more": 1}',
        '{"query": "two", "tools": ["beta", "alpha"]}',
        "",
        '{"query": "three", "tool": "beta", "proposed": true}',
        '{"query": "four", "relevant": []}',
    ]

    assert read("q.jsonl", "\ufeff" + "\n".join(lines)) == QueryFile(
        (
            LabelledQuery("one", A),
            LabelledQuery("two", A | B),
            LabelledQuery("three", B, is_proposed=True),
            LabelledQuery("four", frozenset()),
        )
    )


def test_csv_has_a_column_of_queries_and_one_of_tools(read):
    text = '\ufeffid,query,tools\n1,"one, first",alpha\n2,two,alpha; beta\n3,"three\nlines",\n'

    assert read("q.CSV", text).queries == (
        LabelledQuery("one, first", A),
        LabelledQuery("two", A | B),
        LabelledQuery("three\nlines", frozenset()),
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "the line is no JSON"),
        ("[" * 100_000, "the line is no JSON"),
        ('["one", "alpha"]', "the line is no object"),
        ('{"relevant": ["alpha"]}', '"query" must be text'),
        ('{"query": " ", "relevant": []}', "the query is empty"),
        ('{"query": "/(/", "relevant": []}', "the pattern '(' cannot be used"),
        ('{"query": "select:", "relevant": []}', "select: needs names"),
        (b'{"query": "caf\xe9", "relevant": []}', '"query" is not valid UTF-8'),
        ('{"query": "x"}', "the tools must be said once"),
        ('{"query": "x", "tool": "alpha", "tools": []}', "the tools must be said once"),
        ('{"query": "x", "relevant": "alpha"}', '"relevant" must be a list of names'),
        ('{"query": "x", "relevant": [1]}', '"relevant" must be a list of names'),
        ('{"query": "x", "tool": null}', '"tool" must be a name'),
        ('{"query": "x", "tool": "alpa"}', "no tool named 'alpa'; did you mean alpha"),
    ],
)
def test_a_bad_line_is_told_by_its_number_and_costs_no_other(read, line, reason):
    line = line if isinstance(line, bytes) else line.encode()

    found = read("q.jsonl", b'{"query": "one", "tool": "alpha"}\n\n' + line + b'\n{"query": "two", "tool": "beta"}\n')

    assert found.queries == (LabelledQuery("one", A), LabelledQuery("two", B))
    [bad] = found.bad_lines
    assert bad.line == 3
    assert bad.reason.startswith(reason)


def test_a_csv_line_with_a_cell_too_many_or_too_few_is_a_bad_one(read):
    found = read("q.csv", "query,tools\none, first,alpha\ntwo\nthree,beta\n")

    assert found.queries == (LabelledQuery("three", B),)
    assert [bad.line for bad in found.bad_lines] == [2, 3]
    assert all("as many cells as the header" in bad.reason for bad in found.bad_lines)


def test_a_tool_out_of_reach_is_no_right_answer_and_not_hinted_at(read):
    found = read("q.csv", "query,tools\none,alpha\ntwo,beta\n", reach=Reach.parse(deny=["alpha"]))

    assert found.queries == (LabelledQuery("two", B),)
    assert found.bad_lines[0].reason == "no tool named 'alpha'"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", "", "holds no query that can be used"),
        ("q.jsonl", '{"query": 1}\n', 'holds no query that can be used; line 1: "query" must be text'),
        ("q.csv", "query;tools\nx;alpha\n", "lacks the column query, tools"),
    ],
)
def test_a_file_without_a_usable_line_is_an_error(read, name, content, message):
    with pytest.raises(BadQueryError, match=message):
        read(name, content)


def test_what_is_written_is_read_back(tmp_path: Path, read):
    queries = (LabelledQuery("où est-ce", A | B), LabelledQuery("made", A, is_proposed=True))

    write_queries(tmp_path / "written.jsonl", queries)

    assert read("copy.jsonl", (tmp_path / "written.jsonl").read_bytes()).queries == queries
