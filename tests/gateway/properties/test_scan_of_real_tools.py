"""How many of thousands of real tools the scan of definitions holds back without need.

Of the large sets, every third tool: it takes a while.
"""

import json
from collections import defaultdict

import pytest

from benchmarks.datasets import SETS
from toolsearch.gateway.trust.scan import Scanner
from toolsearch.gateway.trust.verdicts import Entry, Kind

MOST_HELD = {"metatool": 0.031}  # 6 of 199 plugins, which speak to the model as advertisements do


@pytest.mark.parametrize("name", ["livemcp", "bfcl", "azcli", "sealtools", "metatool", "tldr"])
def test_hardly_any_real_tool_is_held(name):
    path = SETS / name / "tools.jsonl"
    if not path.exists():
        pytest.skip("../shared/eval is absent")
    servers = defaultdict(list)
    lines = path.read_text().splitlines()
    for line in lines[:: 3 if len(lines) > 1_000 else 1]:
        real = json.loads(line)
        entry = {"name": real["name"], "description": real["description"], "inputSchema": real["input_schema"]}
        server = real.get("server") or name
        servers[server].append(Entry(server, Kind.TOOL, real["name"], "any", entry))
    every = [each for tools in servers.values() for each in tools] if len(servers) < 100 else []
    held = 0
    for server, tools in servers.items():
        others = [other for other in every if other.server != server]
        held += sum(map(bool, Scanner().scan(server, tools, others)))

    assert held / sum(map(len, servers.values())) <= MOST_HELD.get(name, 0.01)
