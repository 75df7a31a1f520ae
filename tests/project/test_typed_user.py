"""What users write passes both type checkers in strict mode, and does what it says."""

import tomllib
from pathlib import Path

import pytest

from tests.project import typed_user

ROOT = Path(__file__).parents[2]
USER = "tests/project/typed_user.py"


def test_both_type_checkers_read_what_a_user_writes() -> None:
    """Here their settings are looked at, since `just types` runs them; it fails for a mistake that they do not find."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]

    assert USER in tools["mypy"]["files"]
    assert USER in tools["pyright"]["include"]
    assert tools["mypy"]["strict"]
    assert tools["pyright"]["typeCheckingMode"] == "strict"


def test_what_a_user_writes_runs(capsys: pytest.CaptureFixture[str]) -> None:
    typed_user.main()

    assert capsys.readouterr().out.splitlines() == [
        "found 0 ['burn_mail']",
        "1 3 [{'content': [{'type': 'text', 'text': '3'}], 'isError': False}]",
        "['add'] [{'content': [{'type': 'text', 'text': '3'}], 'isError': False}] 3.",
        "bad_setting",
    ]
