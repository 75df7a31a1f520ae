"""The command line in this process."""

from collections.abc import Callable

import pytest

from tests.kit.commands import Ran
from toolsearch.cli import main


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run a command as a shell would, whatever width pytest-xdist says that the screen has."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str) -> Ran:
        code = main(arguments)
        return Ran(code, *capsys.readouterr())

    return run
