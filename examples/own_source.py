"""A source of your own: each file of SQL in a folder is a tool, and a file that cannot be one is refused.

Needs nothing beyond `pip install .`. A source whose tools change while it is open is a `LiveSource`: it has a method
`follow` as well.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from toolsearch import Catalog, FunctionToolCallback, JsonObject, LoadReport, Refusal, Tool, ToolSearch

FILES = {
    "orders_of.sql": "-- List the orders of a customer.\n"
    "SELECT item FROM orders WHERE customer = :customer ORDER BY item",
    "best_sellers.sql": "-- Find the items that were ordered most often.\n"
    "SELECT item, count(*) AS times FROM orders GROUP BY item ORDER BY times DESC, item LIMIT :limit",
    "cleanup.sql": "DELETE FROM orders",
}
ORDERS = [("ada", "lamp"), ("ada", "desk"), ("bob", "lamp")]


class SqlFolder:
    """A `Source`: the first line of a file describes the tool, and each ``:name`` in it is a parameter."""

    def __init__(self, folder: Path, database: Path) -> None:
        self._folder = folder
        self._database = database
        self.description = f"the folder {folder.name}"

    def load(self) -> LoadReport:
        tools: list[Tool] = []
        refused: list[Refusal] = []
        for path in sorted(self._folder.glob("*.sql")):
            title, _, statement = path.read_text(encoding="utf-8").partition("\n")
            if title.startswith("-- "):
                tools.append(self._tool(f"sql__{path.stem}", title[3:], statement))
            else:
                refused.append(Refusal(path.stem, self.description, "its first line is no comment that describes it"))
        return LoadReport(tuple(tools), tuple(refused))

    def _tool(self, name: str, description: str, statement: str) -> Tool:
        def run(values: JsonObject) -> list[dict[str, object]]:
            # A connection for each call, since calls run in several threads at once.
            with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)) as connection:
                connection.row_factory = sqlite3.Row
                return [dict(row) for row in connection.execute(statement, values)]

        parameters = dict.fromkeys(re.findall(r":(\w+)", statement))
        schema: JsonObject = {
            "type": "object",
            "properties": {each: {"type": "integer" if each == "limit" else "string"} for each in parameters},
            "required": list(parameters),
        }
        hints: JsonObject = {"readOnlyHint": True}
        return FunctionToolCallback.build(name, run, description=description, input_schema=schema, annotations=hints)

    def close(self) -> None:
        """Nothing is held."""


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, database = Path(place) / "queries", Path(place) / "shop.db"
        folder.mkdir()
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("CREATE TABLE orders (customer TEXT, item TEXT)")
            connection.executemany("INSERT INTO orders VALUES (?, ?)", ORDERS)

        with Catalog() as catalog, ToolSearch(catalog) as engine:
            report = catalog.load(SqlFolder(folder, database))  # the catalog closes it
            print([each.name for each in report.tools], [f"{each.name}: {each.reason}" for each in report.refused])
            session = engine.session("ada")
            for query, arguments in (("what sells best", {"limit": 1}), ("orders of a customer", {"customer": "ada"})):
                [found] = session.search(query, limit=1)
                print(f"{query}: {found.name} -> {session.call_sync(found.name, arguments).text}")


if __name__ == "__main__":
    main()
