"""What Windows and small systems lack is guarded: as if it were missing, on the system that the tests run on."""

import ast
import asyncio
import errno
import getpass
import logging
import os
import re
import runpy
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import toolsearch
import toolsearch_indexes
from toolsearch.cli.gateway import _until_terminated
from toolsearch.gateway.approvals.waiting import local_person
from toolsearch.gateway.http import connection_protocol
from toolsearch.service.sealing import open_seal
from toolsearch.storage import files as private_files
from toolsearch.storage.files import make_private, write_private
from toolsearch.storage.records import RecordStore
from toolsearch.storage.sqlite.place import SqliteStorage, new_file
from toolsearch.storage.sqlite.stores import SqlitePins
from toolsearch.threads import ThreadCache
from toolsearch.upstreams.stdio import OrphanGuard
from toolsearch_indexes import forking

# What Python documents as missing on Windows, as far as one would use it in a program like this.
POSIX_MODULES = {
    "crypt",
    "curses",
    "fcntl",
    "grp",
    "posix",
    "pty",
    "pwd",
    "readline",
    "resource",
    "syslog",
    "termios",
    "tty",
}
POSIX_NAMES = {
    *("fork", "forkpty", "killpg", "setsid", "getuid", "geteuid", "getgid", "getpgid", "getpgrp", "getgroups", "chown"),
    *("fchmod", "fchown", "lchown", "mkfifo", "mknod", "pread", "pwrite", "statvfs", "fdatasync", "sched_getaffinity"),
    *("register_at_fork", "wait3", "wait4", "waitid", "WNOHANG", "O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_SYNC"),
    *("SIGKILL", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD", "SIGPIPE", "setitimer", "alarm"),
    *("add_signal_handler", "open_unix_connection", "start_unix_server", "create_unix_server", "AF_UNIX", "sigwait"),
    *("posix_spawn", "POSIX_SPAWN_DUP2"),
    *("RLIMIT_NOFILE", "getrlimit", "getrusage", "flock", "lockf", "SO_REUSEPORT"),
}
GUARDED = {  # each has its test here
    "cli/gateway.py": {"add_signal_handler"},
    # On Windows, `DaemonAddress.of` says that there is no background process, before anything else is done for it.
    "gateway/daemon/main.py": {"fork", "setsid"},
    "gateway/daemon/process.py": {"add_signal_handler", "start_unix_server"},
    "gateway/daemon/connector.py": {"posix_spawn", "POSIX_SPAWN_DUP2"},
    "gateway/daemon/address.py": {"AF_UNIX", "O_CLOEXEC", "O_NOFOLLOW", "fcntl", "flock", "getuid", "pwrite"},
    "gateway/http.py": {"resource", "RLIMIT_NOFILE", "getrlimit"},
    "forking.py": {"register_at_fork"},
}


_ANY = re.compile(rf"\b(?:{'|'.join(sorted(POSIX_MODULES | POSIX_NAMES))})\b")


def posix_uses(file: Path) -> Iterator[str]:
    text = file.read_text("utf-8")
    for node in ast.walk(ast.parse(text)) if _ANY.search(text) else ():
        if isinstance(node, ast.Import):
            yield from POSIX_MODULES & {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module in POSIX_MODULES:
            yield node.module
        elif isinstance(node, ast.Attribute) and node.attr in POSIX_NAMES:
            yield node.attr


def test_what_exists_on_posix_alone_is_used_nowhere_but_behind_a_guard():
    found: dict[str, set[str]] = {}
    for package in (toolsearch, toolsearch_indexes):
        folder = Path(package.__file__).parent
        for file in folder.rglob("*.py"):
            if uses := set(posix_uses(file)):
                found[file.relative_to(folder).as_posix()] = uses

    assert found == GUARDED


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What our own code asks about; the standard library has asked already."""
    monkeypatch.setattr(sys, "platform", "win32")


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(private_files, "_has_warned", threading.Event())
    return tmp_path / "home"


@pytest.mark.usefixtures("windows")
def test_where_modes_mean_nothing_a_folder_that_others_may_read_is_told_of_once(home, tmp_path, caplog):
    write_private(home / "state" / "token", b"t")
    assert caplog.text == ""
    for name in ("one", "two"):
        make_private(tmp_path / "elsewhere" / name)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"nobody else may read {tmp_path / 'elsewhere'}" in record.getMessage()


def test_where_modes_mean_something_nothing_is_told(home, tmp_path, caplog):
    make_private(tmp_path / "file")

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    assert caplog.text == ""


@pytest.mark.usefixtures("windows")
def test_windows_is_not_told_to_run_chmod(tmp_path, caplog, clock):
    (tmp_path / "keys").write_text("A" * 43 + "=")
    (tmp_path / "keys").chmod(0o666)  # as every file looks there
    with closing(SqliteStorage(tmp_path / "db")) as storage:
        records: RecordStore = storage.records
        open_seal({"TOOLSEARCH_SECRET_KEY_FILE": str(tmp_path / "keys")}, tmp_path, records, clock=clock)

    assert "chmod" not in caplog.text


@pytest.mark.usefixtures("windows")
def test_a_copy_is_written_to_disk_where_folders_cannot_be_opened(tmp_path, monkeypatch):
    real = os.open

    def windows_open(path: Path, flags: int, *more: int, **named: int) -> int:
        if path == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied")
        assert Path(path).suffix != ".db" or flags & (
            os.O_RDWR | os.O_WRONLY
        )  # or waiting for the disk would be refused
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", windows_open)
    with new_file(tmp_path / "copy.db") as copy:
        copy.execute("CREATE TABLE t (a)")

    assert (tmp_path / "copy.db").stat().st_size > 0


@pytest.mark.parametrize("error", [OSError(errno.EOPNOTSUPP, "Operation not supported"), AttributeError("link")])
def test_approvals_are_kept_where_there_are_no_hard_links(tmp_path, monkeypatch, error):
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, "link", refuse)
    for _ in range(2):
        SqlitePins(tmp_path / "trust.db").close()

    assert stat.S_IMODE((tmp_path / "trust.db").stat().st_mode) == 0o600


def test_connections_are_bounded_by_their_number_alone_where_files_are_not_counted(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)

    assert connection_protocol(max_connections=10**9).most == 10**9  # type: ignore[attr-defined]


def test_without_a_shell_servers_run_and_it_is_told_what_is_missing(monkeypatch, caplog):
    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/bin/sh")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    guard = OrphanGuard()
    guard.add(1)
    guard.discard(1)

    assert "no shell could be started" in caplog.text


@pytest.mark.usefixtures("windows")
def test_on_windows_no_shell_is_started_since_the_system_ends_servers(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a shell"))

    OrphanGuard().add(1)


async def test_a_gateway_is_served_where_no_signal_asks_a_process_to_end(monkeypatch):
    def refuse(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(asyncio.get_running_loop(), "add_signal_handler", refuse)
    served: list[str] = []

    async def serve() -> None:
        served.append("once")

    await _until_terminated(serve())

    assert served == ["once"]


def test_nothing_is_told_of_forks_where_processes_do_not_fork(monkeypatch):
    monkeypatch.delattr(os, "register_at_fork", raising=False)

    runpy.run_path(forking.__file__)["follow_forks"](ThreadCache())


@pytest.mark.parametrize("error", [KeyError("uid not found"), OSError("No username"), ImportError("pwd")])
def test_an_approval_is_recorded_for_a_user_without_a_name(monkeypatch, error):
    def refuse() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", refuse)
    assert local_person() == f"user {os.getuid()}"
    monkeypatch.delattr(os, "getuid")
    assert local_person() == "somebody"
