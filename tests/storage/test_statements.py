"""The SQL of the stores, as it stands in the modules."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSERT = re.compile(r"\bINSERT (?:OR \w+ )?INTO (\S+) (\w+|\()")


def test_every_insert_names_its_columns() -> None:
    """So a table may have its columns in another order, as after a step that adds one."""
    found = [
        (path.name, *insert)
        for folder in ("toolsearch", "indexes/toolsearch_indexes")
        for path in (ROOT / folder).rglob("*.py")
        for insert in INSERT.findall(path.read_text(encoding="utf-8"))
    ]

    assert {"api_keys", "contents", "leases", "records", "vectors", "versions"} <= {table for _, table, _ in found}
    assert [each for each in found if each[2] != "("] == []
