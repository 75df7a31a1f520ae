"""What docs/storage.md tells operators of PostgreSQL to type works as it stands, but for names of hosts and folders."""

import os
import re
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.kit.postgres import PostgresServer, debian
from tests.kit.storage_contracts.storage import contents, fill
from toolsearch.storage.opening import open_storage
from toolsearch.storage.sqlite.place import SqliteStorage

PAGE = (Path(__file__).parents[3] / "docs" / "storage.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def typed(tmp_path: Path):
    """Type the block that begins so, in a folder whose DIR is the data of a service."""
    with closing(SqliteStorage(tmp_path / "DIR" / "toolsearch.db")) as storage:
        fill(storage, "a")

    def typed(beginning: str, url: str, *, replaced: tuple[tuple[str, str], ...] = ()) -> str:
        [block] = [text for text in BLOCKS if text.startswith(beginning)]
        for old, new in replaced:
            assert old in block
            block = block.replace(old, new)
        command = f'toolsearch() {{ {shlex.quote(sys.executable)} -m toolsearch "$@"; }}\n'
        done = subprocess.run(
            ["bash", "-e", "-c", command + block],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TOOLSEARCH_STORE": url},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return typed


def kept(url: str | None, file: Path) -> list[object]:
    with closing(open_storage(url, file)) as storage:
        return contents(storage, "a")


def test_the_url_of_the_page_is_checked_and_then_moved_to(typed, postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_database(is_empty=True)
    of_page = re.search(r"'(postgresql://[^']*)'", PAGE)
    assert of_page is not None
    assert "no tables yet" in typed("export TOOLSEARCH_STORE", "", replaced=((of_page[1], url),))

    typed("TOOLSEARCH_STORE= toolsearch backup", url)
    assert kept(url, Path()) == kept(None, tmp_path / "DIR" / "toolsearch.db")
    assert kept(url, Path()) != kept(None, tmp_path / "empty.db")


def test_the_backup_of_the_page_comes_back_in_another_folder(typed, tmp_path: Path) -> None:
    typed("toolsearch backup", "")

    assert kept(None, tmp_path / "NEW-DIR" / "toolsearch.db") == kept(None, tmp_path / "DIR" / "toolsearch.db")


def test_the_role_of_the_page_can_make_the_tables_and_write(typed) -> None:
    """With the programs of the server's version, which Debian installs with it."""
    server = PostgresServer(debian())
    try:
        server.start()
        typed("psql", "", replaced=(("psql", f"psql {server.url()}"),))
        url = server.url("toolsearch").replace("postgres@", "toolsearch@")
        with closing(open_storage(url, Path())) as storage:
            fill(storage, "a")
            assert contents(storage, "a")
    finally:
        server.close()
