"""Two versions are measured by turns, each as it is installed."""

import json
import os
from pathlib import Path

import pytest

from benchmarks import speed_paired
from benchmarks.results import ROOT


@pytest.fixture(autouse=True)
def made_up_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(speed_paired, "SETS", tmp_path / "none")


def test_every_row_has_a_figure_of_both_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    stored = tmp_path / "speed.json"

    assert speed_paired.main([str(ROOT), str(ROOT), "--sizes", "40,60", "--rounds", "1", "--json", str(stored)]) == 0

    rows = {row["what"]: row for row in json.loads(stored.read_text("utf-8"))["figures"]}
    assert all(row["old"] > 0 and row["new"] > 0 for row in rows.values())
    assert {
        "hybrid, 40 tools: CPU",
        "hybrid, 40 tools: wall, alone, p95",
        "hybrid, 40 tools: wall, beside a busy process, median",
        "hybrid, 60 tools: CPU",
        "keyword, 40 tools: CPU, in rank-bm25's",
        "hybrid, 40 tools, 4 sentences: CPU",
        "change one of 60 tools, search: CPU",
        "index 60 tools: CPU",
        "memory, at its peak",
        "from toolsearch import ToolSearch: CPU",
        "toolsearch --version: wall",
        "gateway, 5 servers, a call: CPU",
        "gateway, 5 servers: memory, its own",
    } <= rows.keys()
    assert os.environ["OMP_NUM_THREADS"] == "1"


def test_a_folder_that_holds_no_version_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    """Else Python would take the version that is installed, and compare it with itself."""
    with pytest.raises(SystemExit, match="no checkout of toolsearch"):
        speed_paired.main([str(ROOT), str(tmp_path), "--sizes", "2,3", "--rounds", "1"])
