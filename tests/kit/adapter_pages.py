"""The pages of docs/adapters run in the environment of the framework that each is about."""

import re
from pathlib import Path

from tests.kit.framework_environment import ROOT, Framework

PAGES = ROOT / "docs" / "adapters"
_SHOWN = re.compile(r"^```python\n.*?^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def assert_runs(page: Path, framework: Framework) -> None:
    """Each block of Python runs, and prints what the block ``text`` after it says."""
    shown = _SHOWN.findall(page.read_text(encoding="utf-8"))

    assert shown
    assert framework.run("run_page.py", str(page)) == shown
