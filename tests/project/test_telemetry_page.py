"""The page of telemetry names all metrics, and no others."""

import re
from pathlib import Path
from typing import Any

from toolsearch.spans import Instruments

PAGE = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text(encoding="utf-8")
TABLE = PAGE[PAGE.index("| metric |") :].partition("\n\n")[0]


class Meter:
    """Notes the name of each metric that it is asked to make."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getattr__(self, _: str) -> Any:
        return lambda name, *_, **__: self.names.add(name)


def test_the_table_names_each_metric() -> None:
    meter = Meter()
    kinds: Any = (None, None, None)
    Instruments.of(None, kinds, meter, clock=float, capture_content=False, capture_definitions=False)  # type: ignore[arg-type]

    assert {name for row in TABLE.splitlines() for name in re.findall(r"`([\w.]+)`", row.split("|")[1])} == meter.names
