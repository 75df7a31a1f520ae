"""How many tools are read at once: one, unless they are asked for one after another."""

from collections.abc import Collection

from toolsearch.service.corpora.stored_tools import ReadAhead
from toolsearch.storage.contents import StoredTool

NAMES = [f"tool_{number:04}" for number in range(2_000)]


class Asked:
    """A store of *NAMES* but for those that are gone."""

    def __init__(self, *gone: str) -> None:
        self.gone = gone
        self.sizes: list[int] = []

    def get(self, names: Collection[str]) -> list[StoredTool]:
        self.sizes.append(len(names))
        return [StoredTool(name, "f", {}) for name in names if name not in self.gone]


def test_all_tools_one_after_another_take_few_readings() -> None:
    """1 + 2 + 4 + ... + 256 are 511 tools, and then 500 at once: 500, 500, and the 489 that are left."""
    store = Asked()
    rows = ReadAhead(NAMES, store.get)

    assert [row.name for row in map(rows.read, NAMES) if row] == NAMES
    assert store.sizes == [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 489]


def test_tools_in_no_order_are_read_one_by_one() -> None:
    store = Asked()
    rows = ReadAhead(NAMES, store.get)
    for number in (7, 3, 5, 900, 1):
        assert rows.read(NAMES[number]) == StoredTool(NAMES[number], "f", {})

    assert store.sizes == [1, 1, 1, 1, 1]


def test_a_tool_that_is_gone_is_none_and_those_after_it_are_read() -> None:
    store = Asked(NAMES[2])
    rows = ReadAhead(NAMES, store.get)
    found = [rows.read(name) for name in NAMES[:5]]

    assert [row.name if row else None for row in found] == [NAMES[0], NAMES[1], None, NAMES[3], NAMES[4]]
