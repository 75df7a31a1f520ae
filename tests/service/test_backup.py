"""Copies of what a service keeps, and what comes back from them."""

import base64
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.kit.storage_contracts.contents import tool
from tests.kit.storage_contracts.storage import contents, fill
from toolsearch.cli import main
from toolsearch.errors import StorageError
from toolsearch.service.data_folder import STORE_FILE, back_up, data_folder, restore
from toolsearch.service.sealing import open_seal
from toolsearch.storage.sqlite.place import SqliteStorage

KEYS = [base64.b64encode(character * 32).decode() for character in (b"o", b"n")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder of a service with two tenants, which does not run."""
    with closing(SqliteStorage(tmp_path / "data" / STORE_FILE)) as storage:
        fill(storage, "a")
        fill(storage, "b")
    return tmp_path / "data"


def kept(folder: Path) -> list[object]:
    with closing(SqliteStorage(folder / STORE_FILE)) as storage:
        return [*contents(storage, "a"), *contents(storage, "b"), storage.audit.records(limit=99)]


def test_what_was_backed_up_comes_back_in_another_folder(data: Path, tmp_path: Path) -> None:
    assert back_up(data, tmp_path / "copy.db") == restore(tmp_path / "copy.db", tmp_path / "new" / "data")

    assert kept(tmp_path / "new" / "data") == kept(data)
    modes = [stat.filemode(path.stat().st_mode) for path in (tmp_path / "copy.db", tmp_path / "new/data" / STORE_FILE)]
    assert modes == ["-rw-------"] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "data", "new"]


def test_a_backup_is_of_one_moment_while_a_service_writes(data: Path, tmp_path: Path) -> None:
    """Each transaction writes one tool into each of two catalogs, so that a copy between them would tell."""
    stop = threading.Event()

    def write() -> int:
        done = 0
        with closing(SqliteStorage(data / STORE_FILE)) as storage:
            while not stop.is_set():
                with storage.transaction():
                    storage.contents.change("a", "one", put=[tool(f"t{done}")])
                    storage.contents.change("a", "two", put=[tool(f"t{done}")])
                done += 1
        return done

    with ThreadPoolExecutor(1) as elsewhere:
        writing = elsewhere.submit(write)
        try:
            for number in range(5):
                back_up(data, tmp_path / f"copy{number}.db")
        finally:
            stop.set()
        assert writing.result() > 0

    for number in range(5):
        restore(tmp_path / f"copy{number}.db", tmp_path / f"data{number}")
        with closing(SqliteStorage(tmp_path / f"data{number}" / STORE_FILE)) as storage:
            assert storage.contents.count("a", "one") == storage.contents.count("a", "two")


def test_a_backup_overwrites_nothing_and_needs_something_to_copy(data: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")

    with pytest.raises(StorageError, match=r"copy\.db exists"):
        back_up(data, tmp_path / "copy.db")
    with pytest.raises(StorageError, match="no service keeps anything in"):
        back_up(tmp_path / "empty", tmp_path / "other.db")
    with pytest.raises(StorageError, match="cannot be copied"):
        back_up(data, tmp_path / "missing" / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"
    assert not (tmp_path / "other.db").exists()


def test_a_damaged_store_is_not_backed_up_as_if_it_were_sound(data: Path, tmp_path: Path) -> None:
    file = data / STORE_FILE
    whole = file.read_bytes()
    middle = len(whole) // 2 // 4096 * 4096
    file.write_bytes(whole[:middle] + b"\xaa" * 4096 + whole[middle + 4096 :])

    with pytest.raises(StorageError, match=r"damaged|malformed"):
        back_up(data, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_nothing_is_restored_over_a_store_or_what_sqlite_left_of_one(data: Path, tmp_path: Path) -> None:
    back_up(data, tmp_path / "copy.db")
    before = kept(data)
    with pytest.raises(StorageError, match=r"toolsearch\.db exists; move it away"):
        restore(tmp_path / "copy.db", data)
    assert kept(data) == before

    (data / STORE_FILE).unlink()
    (data / f"{STORE_FILE}-wal").write_bytes(b"of the file that was here")
    with pytest.raises(StorageError, match=r"toolsearch\.db-wal exists"):
        restore(tmp_path / "copy.db", data)
    assert not (data / STORE_FILE).exists()


def test_nothing_is_restored_while_a_service_runs_there(data: Path, tmp_path: Path) -> None:
    back_up(data, tmp_path / "copy.db")

    with data_folder(tmp_path / "new"), pytest.raises(StorageError, match="another process"):
        restore(tmp_path / "copy.db", tmp_path / "new")
    assert not (tmp_path / "new" / STORE_FILE).exists()


def test_only_a_sound_copy_of_ours_is_restored(data: Path, tmp_path: Path) -> None:
    back_up(data, tmp_path / "cut.db")
    (tmp_path / "cut.db").write_bytes((tmp_path / "cut.db").read_bytes()[:20_000])
    (tmp_path / "text.db").write_text("no database at all" * 1_000)
    (tmp_path / "empty.db").touch()
    with closing(sqlite3.connect(tmp_path / "accounts.db")) as database:
        database.execute("CREATE TABLE accounts (name)")

    for name in ("cut", "text", "empty", "accounts", "missing"):
        with pytest.raises(StorageError, match=name):
            restore(tmp_path / f"{name}.db", tmp_path / "new")
    assert not (tmp_path / "new" / STORE_FILE).exists()


# The commands


def test_the_commands_copy_and_put_back(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy, new = str(tmp_path / "copy.db"), str(tmp_path / "new")

    assert main(["backup", "--data", str(data), "--to", copy]) == 0
    assert "everything but the secret key" in capsys.readouterr().err
    assert main(["restore", copy, "--data", new]) == 0
    assert "the secret key beside it" in capsys.readouterr().err
    assert kept(tmp_path / "new") == kept(data)
    assert main(["restore", copy, "--data", new]) == 3
    assert "exists; move it away" in capsys.readouterr().err


def test_the_command_seals_anew_and_an_exchanged_key_can_be_thrown_away(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = KEYS
    with closing(SqliteStorage(data / STORE_FILE)) as storage:
        seal = open_seal({"TOOLSEARCH_SECRET_KEY": old}, data, storage.records, clock=lambda: 1.0)
        storage.records.put("a", "source", "x", {"sealed": seal.seal("secret")}, over=0, at_s=1.0)

    monkeypatch.setenv("TOOLSEARCH_SECRET_KEY", new)
    assert main(["reseal", "--data", str(data)]) == 3
    assert "another key" in capsys.readouterr().err
    monkeypatch.setenv("TOOLSEARCH_SECRET_KEY", f"{new},{old}")
    assert main(["reseal", "--data", str(data)]) == 0
    assert "Sealed anew: 2." in capsys.readouterr().err
    monkeypatch.setenv("TOOLSEARCH_SECRET_KEY", new)
    assert main(["reseal", "--data", str(data)]) == 0


def test_a_lost_key_can_be_given_up_and_what_it_sealed_is_counted(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = KEYS
    with closing(SqliteStorage(data / STORE_FILE)) as storage:
        seal = open_seal({"TOOLSEARCH_SECRET_KEY": old}, data, storage.records, clock=lambda: 1.0)
        storage.records.put("a", "source", "x", {"sealed": seal.seal("secret")}, over=0, at_s=1.0)

    monkeypatch.setenv("TOOLSEARCH_SECRET_KEY", new)
    assert main(["reseal", "--data", str(data), "--forget-lost-key"]) == 1
    assert "by no key: 1." in capsys.readouterr().err
    assert main(["reseal", "--data", str(data)]) == 1
    assert main(["reseal", "--data", str(data / "elsewhere")]) == 3


def test_a_file_is_no_folder_to_keep_data_in(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")

    with pytest.raises(StorageError, match=r"notes\.txt is not a folder"), data_folder(tmp_path / "notes.txt"):
        pass
