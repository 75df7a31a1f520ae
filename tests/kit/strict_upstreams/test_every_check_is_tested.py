"""Every name of a check in the package appears in a test of refusals."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_every_check_is_tested() -> None:
    """Collect the names from the source and look for each in the tests."""
    names: set[str] = set()
    for path in HERE.glob("*.py"):
        if path == Path(__file__):
            continue
        source = path.read_text()
        names |= set(re.findall(r'Refusal\(\s*"([a-z_0-9]+)"', source))
        names |= set(re.findall(r'check: str = "([a-z_]+)"', source))
        others = r'"((?:call_id|id)_length|call_name|empty_calls|no_messages|array_items|strict)"'
        names |= set(re.findall(others, source))
    tests = "".join(path.read_text() for path in (HERE / "integration").glob("test_*_refusals.py"))
    missing = {name for name in names if f'"{name}"' not in tests}
    assert missing <= {"fault"}, missing
