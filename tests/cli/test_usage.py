"""``toolsearch usage``: what was learnt, shown and forgotten."""

import json
from pathlib import Path

import pytest

from toolsearch.cli import main
from toolsearch.storage.sqlite.stores import SqliteUsageStore
from toolsearch.storage.usage import UsageCell

SENT_ONCE = {
    UsageCell("mail", "send_mail"): 2.0,
    UsageCell("mail", ""): 4.0,
    UsageCell("", "send_mail"): 2.0,
    UsageCell("", ""): 4.0,
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    """What a file holds that two principals have used, at a time to come, so that nothing has faded."""
    path = tmp_path / "usage.sqlite"
    with SqliteUsageStore(path) as store:
        for principal in ("acme", "zeta"):
            store.add(principal, SENT_ONCE, at_s=4e9, half_life_s=1.0)
    return str(path)


def test_what_was_learnt_is_shown_by_principal(file: str, capsys) -> None:
    assert main(["usage", "show", file, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["principals"]

    assert list(shown) == ["acme", "zeta"]
    assert shown["acme"] == [{"term": "mail", "tool": "send_mail", "called": 2.0, "asked": 4.0}]

    assert main(["usage", "show", file, "--principal", "acme"]) == 0
    text = capsys.readouterr().out
    assert "send_mail" in text
    assert "zeta" not in text


def test_one_principal_is_forgotten_or_all_but_not_by_mistake(file: str, capsys) -> None:
    assert main(["usage", "reset", file]) == 2
    assert "--principal NAME, or --all" in capsys.readouterr().err
    assert main(["usage", "reset", file, "--principal", "acme"]) == 0
    assert main(["usage", "show", file, "--principal", "acme"]) == 1
    assert main(["usage", "show", file, "--principal", "zeta"]) == 0
    assert main(["usage", "reset", file, "--all"]) == 0
    assert main(["usage", "show", file]) == 1


def test_a_file_that_is_not_there_is_an_error_and_is_not_made(tmp_path: Path, capsys) -> None:
    missing = tmp_path / "usage.sqlite"

    assert main(["usage", "show", str(missing)]) == 2
    assert "there is no file" in capsys.readouterr().err
    assert not missing.exists()
