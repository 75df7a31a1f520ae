"""Where the data that is measured on lies: labelled sets beside the checkout, our own queries, and installed tools.

It imports nothing of toolsearch: `reach` loads two versions of that, and the runner none.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from benchmarks.results import ROOT

SETS: Final = ROOT.parent / "shared" / "eval"  # a folder for each set; of others' data, so that it is not in ours
TEST, TRAIN = "queries.test.jsonl", "queries.train.jsonl"  # in each of them; not all have the latter
AGENT_QUERIES: Final = ROOT / "benchmarks" / "agent_queries"  # a file for each catalogue
LANGUAGES: Final = ROOT / "benchmarks" / "languages"  # some of them in other languages
REQUESTS: Final = ROOT / "benchmarks" / "requests"  # what users ask of the tools of a set; a file for each
UNANSWERABLE: Final = ROOT / "benchmarks" / "unanswerable.jsonl"
OUT_OF_SCOPE: Final = ROOT / "benchmarks" / "out_of_scope.jsonl"  # what no tool of the agent queries' catalogues serves
UNSEEN: Final = ROOT / "benchmarks" / "unseen.jsonl"  # written blind, for reporting alone
UNANSWERABLE_DEV: Final = ROOT / "benchmarks" / "unanswerable_dev.jsonl"  # for fitting and choosing
OCTOKIT: Final = ROOT / "benchmarks" / "node_modules" / "@octokit" / "openapi"
MCP_SERVERS: Final = ROOT / "tests" / "mcp_servers" / "node_modules" / "@modelcontextprotocol"


def add_sets_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", type=Path, default=SETS, metavar="FOLDER", help="a folder with a folder for each set")


def set_folders(sets: Path) -> list[Path]:
    """The folders of the sets in *sets*, by name. What has no test queries is no set."""
    return sorted(path.parent for path in sets.glob(f"*/{TEST}"))
