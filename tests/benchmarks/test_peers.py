"""The benchmark of peers: how a system is asked in its own environment, how it is judged, and what its row says."""

import ast
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks import environments
from benchmarks.environments import Environment, NotInstalledError
from benchmarks.labelled import LabelledQuery, LabelledSet
from benchmarks.peers import __main__ as peers
from benchmarks.peers import asking
from benchmarks.peers.asking import Means, ask
from benchmarks.peers.catalogues import as_one, as_requested, catalogues, sized, with_requests
from benchmarks.peers.environments import ENVIRONMENTS, OURS, packages_of, python_of
from benchmarks.peers.names import legal_names
from benchmarks.peers.published import Published
from benchmarks.peers.systems import SYSTEMS, System
from benchmarks.peers.verdicts import published_verdict, verdict
from benchmarks.results import read_figures

INSIDE = Path(asking.__file__).parent / "inside"

FAKE = """
import os, signal

class Last:
    def index(self, tools): self.names = [tool["name"] for tool in tools]
    def search(self, query, limit): return self.names[::-1]

class Choosy(Last):
    def index(self, tools):
        if len(tools) > 1: raise ValueError("too many tools")
        super().index(tools)

class Killed(Last):
    def search(self, query, limit): os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.fixture
def means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Means:
    """With which ``fake`` is asked, by the interpreter at hand."""
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "fake.py").write_text(FAKE, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(asking, "python_of", lambda *_: Path(sys.executable))
    return Means(tmp_path)


def test_a_system_sees_legal_names_and_is_judged_by_the_ids_they_stand_for(means: Means) -> None:
    catalogue = LabelledSet("two", [_tool("s/a"), _tool("s/b")], [_query("b", "s/b"), _query("a", "s/a")])

    row = ask(System("fake", "Last"), [catalogue], means)["two"]

    assert (row["recall_1"], row["recall_5"]) == (0.5, 1.0)
    assert row["versions"] == {}
    assert row["query_ms"] >= 0
    assert row["index_s"] >= 0


def test_what_a_system_has_answered_before_it_fails_counts(means: Means) -> None:
    one = LabelledSet("one", [_tool("a")], [_query("a", "a")])
    two = LabelledSet("two", [_tool("a"), _tool("b")], [_query("a", "a")])

    rows = ask(System("fake", "Choosy"), [one, two], means)

    assert rows["one"]["recall_1"] == 1.0
    assert rows["two"] == {"missing": "fails: ValueError: too many tools"}


def test_a_system_that_is_killed_has_a_row_that_says_so(means: Means) -> None:
    rows = ask(System("fake", "Killed"), [LabelledSet("one", [_tool("a")], [_query("a", "a")])], means)

    assert rows == {"one": {"missing": "was ended by signal 15"}}


def test_a_system_that_embeds_slowly_is_not_asked_over_a_large_catalogue(means: Means) -> None:
    one = LabelledSet("one", [_tool("a")], [_query("a", "a")])
    two = LabelledSet("two", [_tool("a"), _tool("b")], [_query("a", "a")])

    rows = ask(System("fake", "Last", most=1), [one, two], means)

    assert rows["one"]["recall_1"] == 1.0
    assert rows["two"]["missing"].startswith("not asked over more than 1")


def test_a_system_that_takes_too_long_is_given_up(means: Means) -> None:
    impatient = Means(means.environments, limit_s=0)

    rows = ask(System("fake", "Last"), [LabelledSet("one", [_tool("a")], [_query("a", "a")])], impatient)

    assert rows == {"one": {"missing": "takes more than 0 minutes"}}


def test_a_peer_that_cannot_be_installed_has_rows_that_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments.shutil, "which", lambda _: None)
    monkeypatch.setitem(ENVIRONMENTS, "fake", Environment(("fake==1",), python="0.0"))

    rows = ask(System("fake", "Last"), [LabelledSet("one", [_tool("a")], [])], Means(tmp_path))

    assert rows == {"one": {"missing": "could not be installed: there is no python0.0"}}


def test_an_environment_is_made_again_only_if_it_lacks_what_is_wanted_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments.shutil, "which", lambda _: None)
    monkeypatch.setitem(ENVIRONMENTS, "fake", Environment(("fake==1", "model==2"), python="0.0"))
    (tmp_path / "fake").mkdir()
    made = tmp_path / "fake" / "requires.txt"

    made.write_text("0.0\nfake==1\nmodel==2")
    assert python_of("fake", tmp_path) == tmp_path / "fake" / "bin" / "python"
    made.write_text("0.0\nfake==1\nmodel==1")
    with pytest.raises(NotInstalledError):
        python_of("fake", tmp_path)


def test_ours_is_asked_in_the_environment_at_hand() -> None:
    assert python_of(OURS, Path("nowhere")) == Path(sys.executable)
    assert packages_of(OURS) == []
    assert packages_of("litellm")[:2] == ["litellm", "mcp"]


def test_each_file_of_a_system_has_one_environment_and_each_class_is_there() -> None:
    files = {path.stem: path.read_text("utf-8") for path in (INSIDE / "systems").glob("*.py")}

    assert set(files) == {*ENVIRONMENTS, OURS} == {system.file for system in SYSTEMS.values()}
    for system in SYSTEMS.values():
        assert f"class {system.of}" in files[system.file]
    for environment in ENVIRONMENTS.values():
        assert all("==" in each for each in environment.requires)


@pytest.mark.parametrize("path", sorted(INSIDE.rglob("*.py")), ids=lambda path: path.stem)
def test_what_runs_in_a_peers_environment_imports_nothing_of_this_project(path: Path) -> None:
    imported = {
        name.partition(".")[0] for node in ast.walk(ast.parse(path.read_text("utf-8"))) for name in _imported(node)
    }

    assert not imported & {"benchmarks", "toolsearch"}
    assert "toolsearch_indexes" not in imported or path.stem == OURS


def test_kept_vectors_are_charged_what_they_took_and_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpy = pytest.importorskip("numpy")
    embedded: list[str] = []

    def encode(texts: list[str], **_: object) -> object:
        embedded.extend(texts)
        return numpy.array([[len(text), 0] for text in texts], dtype="float32")

    for run in (_minilm(), _minilm()):
        monkeypatch.setattr(run, "model", lambda: SimpleNamespace(encode=encode))
        run.keep_in(str(tmp_path / "vectors.sqlite"))
        vectors = run.embed_tools(["abc", "a", "abc"])
        assert vectors[:, 0].tolist() == [3, 1, 3]

    assert embedded == ["a", "abc"]
    assert run.borrowed_s() > 0


def test_a_legal_id_is_kept_and_another_gets_a_name_of_its_own() -> None:
    assert list(legal_names(["a b", "a_b", "a/ b", "f#2", "über"])) == ["a_b_2", "a_b", "a_b_3", "f_2", "_ber"]
    assert [len(name) for name in legal_names(["x" * 128, "x" * 129])] == [128, 123]


def test_a_tool_is_given_with_its_server_and_a_schema_that_says_it_is_one() -> None:
    given = as_requested([{**_tool("s/a"), "name": "a", "server": "s"}])

    assert given == [
        {
            "name": "s_a",
            "local_name": "a",
            "server": "s",
            "description": "",
            "input_schema": {"type": "object", "properties": {}},
        }
    ]


def test_as_one_catalogue_sets_take_turns_and_an_id_that_an_earlier_one_has_gets_its_sets_name() -> None:
    one = LabelledSet("one", [_tool("sum"), _tool("cd")], [_query("add", "sum"), _query("go", "cd")])
    two = LabelledSet("two", [_tool("sum")], [_query("total", "sum")])

    both = as_one([one, two])

    assert [tool["id"] for tool in both.tools] == ["sum", "cd", "sum@two"]
    assert [(query.text, *query.relevant) for query in both.queries] == [
        ("add", "sum"),
        ("total", "sum@two"),
        ("go", "cd"),
    ]


def test_each_size_holds_the_right_tools_of_its_queries_and_all_of_a_smaller_one() -> None:
    names = [f"tool{number}" for number in range(20)]
    union = LabelledSet("union", [_tool(name) for name in names], [_query(name, name) for name in names[::3]])

    small, large = sized(union, 3), sized(union, 12)

    assert [query.text for query in small.queries] == ["tool0", "tool3", "tool6"]
    assert len(large.queries) == 7
    assert (len(small.tools), len(large.tools)) == (3, 12)
    ids = [{tool["id"] for tool in each.tools} for each in (small, large)]
    assert ids[0] < ids[1]
    assert all(query.relevant <= ids[1] for query in large.queries)


def test_requests_are_text_at_the_end_of_descriptions() -> None:
    tool: dict[str, Any] = {
        "id": "Time MCP Server/convert_time",
        "name": "convert_time",
        "description": "Convert time",
        "input_schema": {},
    }
    unknown: dict[str, Any] = {"id": "nobody", "name": "nobody", "description": "Nothing", "input_schema": {}}
    query = LabelledQuery("what time is it", frozenset({tool["id"]}))

    enriched = with_requests(LabelledSet("livemcp", [tool, unknown], [query]))

    first, second = (each["description"].split("\n") for each in enriched.tools)
    assert (first[0], len(first), second) == ("Convert time", 5, ["Nothing"])
    assert (enriched.name, enriched.queries) == ("livemcp with requests", [query])


def test_catalogues_are_those_that_the_sets_suffice_for_the_smallest_first() -> None:
    livemcp = LabelledSet("livemcp", [_tool("a"), _tool("b")], [_query("a", "a")])
    names_only = LabelledSet("clinc", [_tool("c")], [_query("c", "c")])

    assert [each.name for each in catalogues([livemcp, names_only], sizes=(1, 2, 3))] == ["1", "clinc", "2", "livemcp"]


ROWS = {
    "keyword": {"recall_5": 0.6, "ndcg_10": 0.5, "query_ms": 0.2},
    "hybrid": {"recall_5": 0.7, "ndcg_10": 0.6, "query_ms": 1.0},
}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ((0.5, 0.4, 0.3), "ahead: keyword"),
        ((0.5, 0.4, 2.0), "ahead: keyword, hybrid"),
        ((0.6, 0.4, 2.0), "ahead: hybrid"),
        ((0.5, 0.4, 0.1), "faster: 0.10 ms against 0.20 of keyword, which finds more. It is small."),
        ((0.6, 0.4, 0.9), "faster: 0.90 ms against 1.00 of hybrid, which finds more. It is small."),
        ((0.7, 0.4, 9.0), "finds more. It is small."),
    ],
)
def test_a_row_says_which_of_ours_find_more_in_less_time_or_why_none_does(
    row: tuple[float, float, float], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SYSTEMS, "peer", System("fake", "Last", about="It is small."))

    assert verdict("peer", {**ROWS, "peer": dict(zip(ROWS["hybrid"], row, strict=True))}) == said


def test_a_row_without_figures_says_why_there_are_none() -> None:
    assert verdict("ratel BM25", {**ROWS, "ratel BM25": {"missing": "takes more than 9 minutes"}}) == (
        "takes more than 9 minutes"
    )


def test_a_published_row_is_compared_by_what_is_found() -> None:
    weak, strong = Published("BM25", 0.5, 0.6, 0.4, ""), Published("8B", 0.65, 0.8, 0.7, "")

    assert published_verdict(weak, ROWS) == "ahead: keyword, hybrid"
    assert published_verdict(strong, ROWS).startswith("finds more, with a model")


def test_ours_is_measured_and_figures_of_others_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "peers.json"
    command = ["--sets", str(_small_set(tmp_path)), "--environments", str(tmp_path), "--json", str(report), "--only"]

    assert peers.main([*command, "hybrid"]) == 0
    assert peers.main([*command, "keyword"]) == 0

    measured = read_figures(report)["catalogues"]["livemcp"]
    assert (measured["tools"], measured["queries"]) == (2, 1)
    assert {name: row["recall_1"] for name, row in measured["systems"].items()} == {"keyword": 1.0, "hybrid": 1.0}
    assert list(measured["systems"]) == ["keyword", "hybrid"]
    assert "livemcp: 2 tools, 1 queries" in capsys.readouterr().out


def test_a_system_that_does_not_exist_is_an_error_that_names_those_that_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        peers.main(["--sets", str(_small_set(tmp_path)), "--only", "keywords"])
    assert "no system keywords; there are" in capsys.readouterr().err


def test_systems_are_chosen_by_their_names_or_by_their_files() -> None:
    assert list(peers.chosen_systems("toolhunch,keyword")) == ["keyword", "toolhunch hybrid (MiniLM)"]
    assert peers.chosen_systems("") == SYSTEMS


def test_without_labelled_sets_there_is_nothing_to_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert peers.main(["--sets", str(tmp_path)]) == 2
    assert "no labelled sets" in capsys.readouterr().err


def _small_set(tmp_path: Path) -> Path:
    folder = tmp_path / "sets" / "livemcp"
    folder.mkdir(parents=True)
    (folder / "tools.jsonl").write_text("\n".join(json.dumps(_tool(name)) for name in ("open", "shut")))
    (folder / "queries.test.jsonl").write_text('{"id": "1", "query": "shut", "relevant": ["shut"]}\n')
    return folder.parent


def _tool(given: str) -> dict[str, object]:
    return {"id": given, "name": given, "description": "", "input_schema": {}}


def _query(text: str, *relevant: str) -> LabelledQuery:
    return LabelledQuery(text, frozenset(relevant))


def _minilm() -> ModuleType:
    """Another one each time, as in another process."""
    spec = importlib.util.spec_from_file_location("minilm", INSIDE / "minilm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
