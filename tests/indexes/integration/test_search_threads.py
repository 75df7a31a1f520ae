"""How many threads a search takes, in a process as users start it: with no OMP_NUM_THREADS."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.commands import Ran

pytestmark = pytest.mark.skipif("not __import__('pathlib').Path('/proc/self/task').exists()", reason="not Linux")

BUILD = """
import sys
import numpy as np
from toolsearch_indexes.vectors import VectorPart

matrix = np.random.default_rng(0).standard_normal((140_000, 128), dtype=np.float32)
matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
part = VectorPart.build(matrix)
assert part.code_bytes
np.savez(sys.argv[1], **part.arrays())
"""

# The kernel counts, for each thread, the nanoseconds that it ran and how often. The parts are built elsewhere: threads
# that helped to build one would still wait for more.
SEARCH = """
import json, os, sys
from pathlib import Path

for name in [name for name in os.environ if name.endswith("_NUM_THREADS")]:
    del os.environ[name]
import faiss, numpy as np
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.vectors import VectorPart

def ran_beside():
    others = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    return {task.name: (task / "schedstat").read_text().split()[::2] for task in others}

if len(sys.argv) > 2:
    faiss.omp_set_num_threads(int(sys.argv[2]))
documents = [ToolDocument(f"tool_{n}", f"Send message {n % 97} to room {n % 89}") for n in range(300)]
index = ToolSearchIndex(documents, encoder=HashingEncoder(256))
coded = VectorPart.from_arrays(np.load(sys.argv[1]))
query, allowed = coded.matrix[0], np.arange(coded.rows) % 2 == 0
tied = VectorPart(np.tile(query, (20_000, 1)))  # so that all are compared
parts = [coded, VectorPart(coded.matrix[:20_000]), tied]
index.search("send")  # what is read once

before = ran_beside()
for text in ("send a message", "send message 5 to room 7, then list the rooms. Also send message 9."):
    for strategy in ("keyword", "semantic", "hybrid"):
        index.search(text, strategy=strategy)
        index.search(text, strategy=strategy, within=[f"tool_{n}" for n in range(0, 300, 2)])
for part in parts:
    part.search(query, 5)
    part.search(query, 5, allowed[: part.rows])
    part.near_each(coded.matrix[:4], 5)  # as for a request of several sentences: faiss gives each a thread
print(json.dumps({"alone": ran_beside() == before, "threads": faiss.omp_get_max_threads()}))
"""


@pytest.fixture
def search(run_python: Callable[..., Ran], tmp_path: Path) -> Callable[..., Any]:
    """Search in a process of its own; returns whether no other thread ran meanwhile, and faiss's number of them."""
    built = str(tmp_path / "part.npz")
    run_python("-c", BUILD, built)
    return lambda *threads: run_python("-c", SEARCH, built, *threads).json


def test_a_search_starts_no_thread_and_wakes_none(search: Callable[..., Any]) -> None:
    """faiss and BLAS would share its products out among all cores."""
    assert search()["alone"]


def test_a_search_leaves_the_number_of_threads_to_the_application(search: Callable[..., Any]) -> None:
    """Where an application has asked faiss for three, it has three after a search, which takes one all the same."""
    assert search("3") == {"alone": True, "threads": 3}
