"""The benchmark of peers: names that they take, tools of all sets as one catalogue, and figures that are kept."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.labelled import LabelledQuery, LabelledSet
from benchmarks.peer_adapters import legal_names, load_adapters, peer_system, probe
from benchmarks.results import FIGURES, read_figures

_BENCHMARKS = Path(peers.__file__).parent

ADAPTERS = """
class Last:
    def index(self, tools): self.names = [tool["name"] for tool in tools]
    def search(self, query, k): return self.names[::-1][:k]

class Absent:
    def index(self, tools): import no_such_package

REGISTRY = {"fastmcp-bm25": Last, "ratel-bm25": Absent}

def make(name): return REGISTRY[name]()
"""

PROBES = """
import logging, sys
from adapters import make
logging.disable(logging.WARNING)
rows = {}
for name in sys.argv[1:]:
    adapter = make(name)
    adapter.index([{"name": n, "description": "", "input_schema": {}} for n in ("lock", "open_door", "paint")])
    rows[name] = {"a part of the name": "1" if adapter.search("door", 5)[:1] == ["open_door"] else "-"}
open("probes.json", "w").close()
"""


@pytest.fixture
def adapters_file(tmp_path: Path) -> Path:
    path = tmp_path / "adapters.py"
    path.write_text(ADAPTERS, "utf-8")
    return path


def test_a_legal_id_is_kept_and_another_gets_a_name_of_its_own() -> None:
    assert list(legal_names(["a b", "a_b", "a/ b", "f#2", "über"])) == ["a_b_2", "a_b", "a_b_3", "f_2", "_ber"]
    assert [len(name) for name in legal_names(["x" * 128, "x" * 129])] == [128, 123]


def test_a_peer_sees_legal_names_and_is_judged_by_the_ids_they_stand_for() -> None:
    class Peer:
        def index(self, tools: list[dict[str, object]]) -> None:
            self.names = [tool["name"] for tool in tools]
            self.schemas = [tool["input_schema"] for tool in tools]

        def search(self, query: str, k: int) -> list[str]:
            return self.names[:k] if query in self.names else []

    peer = Peer()
    search = peer_system(lambda: peer, with_schemas=False)([_tool("s/b", {"type": "object"}), _tool("a")])

    assert (peer.names, peer.schemas) == (["s_b", "a"], [{}, {}])
    assert search("s_b") == ["s/b", "a"]


def test_as_one_catalogue_an_id_that_an_earlier_set_has_gets_its_sets_name() -> None:
    one = LabelledSet("one", [_tool("sum"), _tool("cd")], [LabelledQuery("add", frozenset({"sum"}))])
    two = LabelledSet("two", [_tool("sum")], [LabelledQuery("total", frozenset({"sum"}))])

    both = peers.union([one, two])

    assert [tool["id"] for tool in both.tools] == ["sum", "cd", "sum@two"]
    assert {(query.text, query.relevant) for query in both.queries} == {
        ("add", frozenset({"sum"})),
        ("total", frozenset({"sum@two"})),
    }


def test_a_system_that_would_take_too_long_is_judged_by_few_queries(monkeypatch) -> None:
    """Two queries of 3 s foretell 12 s for four and 1 s of indexing, 13 s; 2.5 s each foretell 11."""
    monkeypatch.setattr(peers, "FEW", 2)
    monkeypatch.setattr(peers, "CPU_LIMIT_S", 12)
    labelled = LabelledSet("set", [_tool("a")], [LabelledQuery("a", frozenset("a"))] * 4)

    slow = peers.measure(_always_a, labelled, _clock(1, 3, 3))
    fast = peers.measure(_always_a, labelled, _clock(1, 2.5, 2.5, 2.5, 2.5))

    assert (slow["queries"], slow["query_ms"], slow["index_s"], slow["recall_1"]) == (2, 3_000, 1, 1)
    assert fast["queries"] == 4


def test_a_peer_that_embeds_slowly_is_not_asked_to_embed_a_large_catalogue(
    tmp_path: Path, adapters_file: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(peers, "MOST_TOOLS", {"fastmcp-bm25": 1})
    sets = _small_set(tmp_path)

    assert peers.main(["--adapters", str(adapters_file), "--sets", str(sets), "--systems", "fastmcp-bm25"]) == 0
    assert "fastmcp-bm25 has no figures for small: it takes too long to embed 2 tools" in capsys.readouterr().out


def test_the_average_is_over_the_sets_with_descriptions_of_systems_measured_on_all_of_them() -> None:
    figures = {
        "bfcl": {"ours": _row(0.5), "peer": _row(0.4)},
        "clinc": {"ours": _row(0.9), "peer": _row(0.9)},
        "tldr": {"ours": _row(0.2), "peer": {"missing": "not installed"}},
        "union": {"ours": _row(0.1)},
    }

    assert peers.averages(figures) == {"ours": _row(0.35)}


def test_a_peer_that_is_not_there_is_a_row_that_says_so_and_figures_of_others_are_kept(
    tmp_path: Path, adapters_file: Path, capsys
) -> None:
    sets, report = _small_set(tmp_path), tmp_path / "peers.json"
    command = ["--adapters", str(adapters_file), "--sets", str(sets), "--json", str(report), "--systems"]

    assert peers.main([*command, "fastmcp-bm25,ratel-bm25"]) == 0
    assert peers.main([*command, "keyword"]) == 0

    rows = read_figures(report)["sets"]["small"]
    assert [(name, row.get("recall_1")) for name, row in rows.items()] == [
        ("fastmcp-bm25", 1.0),
        ("ratel-bm25", None),
        ("keyword", 1.0),
    ]
    out = capsys.readouterr().out
    assert "ratel-bm25 has no figures for small: not installed: No module named 'no_such_package'" in out


def test_a_system_that_does_not_exist_is_an_error_that_names_those_that_do(
    tmp_path: Path, adapters_file: Path, capsys
) -> None:
    command = ["--adapters", str(adapters_file), "--sets", str(_small_set(tmp_path)), "--systems"]

    assert peers.main([*command, "keywords"]) == 2
    assert "no system keywords; there are" in capsys.readouterr().err


def test_without_labelled_sets_there_is_nothing_to_measure(tmp_path: Path, adapters_file: Path, capsys) -> None:
    assert peers.main(["--adapters", str(adapters_file), "--sets", str(tmp_path)]) == 2
    assert "no labelled sets" in capsys.readouterr().err


def test_the_probes_run_on_our_systems_beside_the_peers(tmp_path: Path, adapters_file: Path) -> None:
    script = tmp_path / "probes.py"
    script.write_text(PROBES, "utf-8")
    ours = {"keyword": peers.systems_to_measure(None)["keyword"]}

    rows = probe(script, load_adapters(adapters_file), ours, ["fastmcp-bm25"])

    assert rows == {"keyword": {"a part of the name": "1"}, "fastmcp-bm25": {"a part of the name": "-"}}


def test_the_figures_that_are_told_are_those_that_were_stored() -> None:
    told = (_BENCHMARKS / "README.md").read_text("utf-8")
    stored = read_figures(FIGURES / "peers.json")

    assert stored["average"] == peers.averages(stored["sets"])
    for system, row in stored["average"].items():
        figures = " | ".join(f"{row[key]:.3f}" for key in ("recall_1", "recall_5", "recall_10", "ndcg_10"))
        as_one = stored["sets"][peers.UNION].get(system, {}).get("recall_5")
        assert f"| {system} | {figures} | {'-' if as_one is None else f'{as_one:.3f}'} |" in told


def _small_set(tmp_path: Path) -> Path:
    folder = tmp_path / "sets" / "small"
    folder.mkdir(parents=True)
    (folder / "tools.jsonl").write_text("\n".join(json.dumps(_tool(name)) for name in ("open", "shut")))
    (folder / "queries.test.jsonl").write_text('{"id": "1", "query": "shut", "relevant": ["shut"]}\n')
    return folder.parent


def _always_a(tools):
    return lambda query: ["a", query]


def _tool(given: str, schema: dict[str, object] | None = None) -> dict[str, object]:
    return {"id": given, "name": given, "description": "", "input_schema": schema or {}}


def _row(value: float) -> dict[str, float]:
    return dict.fromkeys(("recall_1", "recall_5", "recall_10", "ndcg_10", "mrr_10"), value)


def _clock(*spent_s: float):
    """Seconds of CPU as they stand before and after each piece of work, which takes *spent_s*."""

    def readings() -> Iterator[float]:
        now_s = 0.0
        for each in spent_s:
            yield now_s
            now_s += each
            yield now_s

    return readings().__next__
