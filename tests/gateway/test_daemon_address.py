"""Where a background process is reached: by whom, and with what in common."""

import fcntl
import json
import os
import socket
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from toolsearch.gateway.daemon import address as addresses
from toolsearch.gateway.daemon.address import DaemonAddress, NoDaemonError, Peer, asked, is_own, peer_of
from toolsearch.gateway.settings import GatewaySettings


@pytest.fixture
def environment() -> dict[str, str]:
    return {"XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"], "PATH": "/bin", "TOKEN": "one", "OTHER": "1"}


def config(folder: Path, section: dict[str, Any] | None = None, **server: Any) -> Path:
    path = folder / "mcp.json"
    entry = {"command": "git", "cwd": "/", **server}
    path.write_text(json.dumps({"mcpServers": {"git": entry}, "toolsearch": section or {}}))
    return path


def identity(path: Path, environment: dict[str, str], **more: str) -> str:
    return DaemonAddress.of(path, environment | more).identity


def test_clients_of_one_file_and_one_environment_have_one_place(tmp_path: Path, environment: dict[str, str]) -> None:
    path = config(tmp_path, env={"TOKEN": "${TOKEN}"})
    address = DaemonAddress.of(path, environment)

    assert address.path.parent == Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch"
    assert stat.S_IMODE(address.path.parent.stat().st_mode) == 0o700
    assert DaemonAddress.of(path, environment).path == address.path
    assert identity(path, environment, OTHER="2") == address.identity
    assert "one" not in address.path.name


@pytest.mark.parametrize("written", ["${TOKEN}", "${env:TOKEN}", "${TOKEN:-none}", "a ${OTHER} ${TOKEN}"])
def test_a_client_with_another_value_of_a_variable_that_the_file_names_has_another_place(
    tmp_path: Path, environment: dict[str, str], written: str
) -> None:
    path = config(tmp_path, args=["--token", written])

    assert identity(path, environment, TOKEN="two") != identity(path, environment)
    without = {name: value for name, value in environment.items() if name != "TOKEN"}
    assert identity(path, without) not in {identity(path, environment), identity(path, environment, TOKEN="")}


def test_a_file_or_an_entry_of_the_keyring_counts_by_what_the_configuration_calls_it(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Every process of the user reads the same value there, so the process that serves reads it by itself."""
    (tmp_path / "secret").write_text("one")
    section = {"principals": {"alice": {"token": "${file:secret}"}}}
    address = identity(config(tmp_path, section), environment)
    (tmp_path / "secret").write_text("two")

    assert identity(config(tmp_path, section), environment) == address
    for other in ("${file:other}", "${keyring:vault/alice}"):
        section = {"principals": {"alice": {"token": other}}}
        assert identity(config(tmp_path, section), environment) != address


def test_a_name_that_json_escapes_counts_as_well(tmp_path: Path, environment: dict[str, str]) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"git": {"command": "git", "cwd": "/", "args": ["\\u0024{\\u0054OKEN}"]}}}')

    assert identity(path, environment, TOKEN="two") != identity(path, environment)


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "HTTPS_PROXY", "https_proxy"),
        *("TOOLSEARCH_SECRET_KEY", "TOOLSEARCH_SECRET_KEY_FILE", "OTEL_EXPORTER_OTLP_HEADERS"),
    ],
)
def test_what_servers_inherit_and_what_the_process_reads_counts(
    tmp_path: Path, environment: dict[str, str], name: str
) -> None:
    path = config(tmp_path)

    assert identity(path, environment, **{name: "/other"}) != identity(path, environment)


def test_settings_that_are_only_read_at_the_start_count_and_those_that_a_running_gateway_changes_to_do_not(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    plain = identity(config(tmp_path), environment)

    assert identity(config(tmp_path, {"rules": {"deny": ["git__x"]}}), environment) == plain
    assert identity(config(tmp_path, {"limits": {"repeats": 3}}), environment) == plain
    assert identity(config(tmp_path, args=["--more"]), environment) == plain
    assert identity(config(tmp_path, {"usage": True}), environment) != plain
    changed = GatewaySettings.model_validate(
        {"rules": {"deny": ["git__x"]}, "servers": {"git": {"lazy": False}}, "limits": {"repeats": 3}}
    )
    assert GatewaySettings().needing_restart(changed) == []
    assert GatewaySettings().needing_restart(GatewaySettings.model_validate({"usage": True})) == ["usage"]


@pytest.mark.parametrize("setting", GatewaySettings.model_fields)
def test_another_process_serves_exactly_the_settings_that_a_running_gateway_cannot_change_to(
    tmp_path: Path, environment: dict[str, str], setting: str
) -> None:
    written, running = to_camel(setting), GatewaySettings()
    changed = running.model_copy(update={setting: object()})
    is_another = identity(config(tmp_path, {written: "new"}), environment) != identity(config(tmp_path), environment)

    assert running.needing_restart(changed) == [written] * is_another


@pytest.mark.parametrize(
    ("section", "server", "depends"),
    [
        ({}, {}, False),
        ({}, {"cwd": None}, True),
        ({}, {"cwd": "here"}, True),
        ({"stateDir": "state"}, {}, True),
        ({"stateDir": "/state"}, {}, False),
        ({"requestsFiles": ["mine.jsonl"]}, {}, True),
        ({"requestsFiles": ["/mine.jsonl"]}, {}, False),
        ({"encoder": "mine"}, {}, True),
    ],
)
def test_the_working_folder_counts_where_something_may_be_relative_to_it(
    tmp_path: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    section: dict[str, Any],
    server: dict[str, Any],
    depends: bool,
) -> None:
    path = config(tmp_path, section, **server)
    here = identity(path, environment)
    monkeypatch.chdir(Path(environment["XDG_RUNTIME_DIR"]))

    assert (identity(path, environment) != here) is depends


@pytest.mark.parametrize(
    "document",
    [
        {"servers": {"git": {"command": "git", "cwd": "/"}}},
        {"servers": {}, "mcpServers": {}},
        {"mcpServers": []},
        {"mcpServers": {"git": 1}},
        {"mcpServers": {}, "toolsearch": 1},
    ],
)
def test_the_working_folder_counts_where_servers_or_settings_cannot_be_told(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, document: dict[str, Any]
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(document))
    here = identity(path, environment)
    monkeypatch.chdir(Path(environment["XDG_RUNTIME_DIR"]))

    assert identity(path, environment) != here


def test_folders_in_path_count_by_the_programs_that_start_servers(tmp_path: Path, environment: dict[str, str]) -> None:
    """Codex adds a folder of its own to PATH at each start."""
    for name, program in (("agent", "apply_patch"), ("node", "npx"), ("text", "npx")):
        (tmp_path / name).mkdir()
        (tmp_path / name / program).touch(0o755 if name != "text" else 0o644)
    path, plain = config(tmp_path), environment["PATH"]

    assert identity(path, environment, PATH=f"{tmp_path}/agent:{plain}") == identity(path, environment)
    assert identity(path, environment, PATH=f"{tmp_path}/text:{plain}") == identity(path, environment)
    assert identity(path, environment, PATH=f"{tmp_path}/node:{plain}") != identity(path, environment)


@pytest.mark.parametrize(
    ("command", "counts"), [("mcp-files", True), ("${OTHER}", True), ("/opt/mcp-files", False), (7, False)]
)
@pytest.mark.parametrize("section", ["mcpServers", "servers"])
def test_folders_in_path_count_by_the_programs_of_the_servers(
    tmp_path: Path, environment: dict[str, str], command: Any, counts: bool, section: str
) -> None:
    """A checkout puts a folder of its own in front, and its program must not serve clients elsewhere."""
    (tmp_path / "mcp-files").touch(0o755)
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({section: {"files": {"command": command, "cwd": "/"}}}))

    assert (identity(path, environment, PATH=f"{tmp_path}:/bin") != identity(path, environment)) is counts


def test_a_folder_with_the_name_of_a_program_hides_no_program(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "folder" / "node").mkdir(parents=True)
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "node").touch(0o755)
    path = config(tmp_path)

    one, other = (identity(path, environment, PATH=f"{tmp_path}/folder:{tmp_path}/{name}") for name in ("one", "other"))
    assert one != other


def test_another_file_with_the_same_content_has_another_place(tmp_path: Path, environment: dict[str, str]) -> None:
    path = config(tmp_path)
    other = tmp_path / "other.json"
    other.write_bytes(path.read_bytes())

    assert identity(other, environment) != identity(path, environment)


def test_another_installation_has_another_place(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is another one in another folder, and in the same folder once its files are others."""
    path = config(tmp_path)
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    program = tmp_path / "one" / "__init__.py"
    program.touch()
    (tmp_path / "other" / "__init__.py").hardlink_to(program)
    monkeypatch.setattr(addresses, "_PROGRAM", tmp_path / "one")
    here = identity(path, environment)
    monkeypatch.setattr(addresses, "_PROGRAM", tmp_path / "other")
    assert identity(path, environment) != here

    monkeypatch.setattr(addresses, "_PROGRAM", tmp_path / "one")
    assert identity(path, environment) == here
    os.utime(program, (1, 1))
    assert identity(path, environment) != here


def test_the_digest_has_a_key_that_only_its_user_can_read(tmp_path: Path, environment: dict[str, str]) -> None:
    path = config(tmp_path)
    first = identity(path, environment)
    key = Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch" / "key"
    assert (stat.S_IMODE(key.stat().st_mode), key.stat().st_size) == (0o600, 32)

    key.write_bytes(bytes(32))
    assert identity(path, environment) != first


def test_a_key_that_was_cut_is_replaced_and_a_link_in_its_place_is_refused(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    path = config(tmp_path)
    identity(path, environment)
    key = Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch" / "key"
    key.write_bytes(b"short")
    first = identity(path, environment)
    assert key.stat().st_size == 32
    assert identity(path, environment) == first

    key.rename(tmp_path / "elsewhere")
    key.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoDaemonError):
        DaemonAddress.of(path, environment)


def test_the_key_is_read_by_one_process_at_a_time(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two first clients would make two keys."""
    locked: list[int] = []
    monkeypatch.setattr(fcntl, "flock", lambda _, how: locked.append(how))
    identity(config(tmp_path), environment)

    assert locked == [fcntl.LOCK_EX]


def test_a_link_in_place_of_the_lock_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    address = DaemonAddress.of(config(tmp_path), environment)
    address.path.with_suffix(".lock").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(NoDaemonError):
        address.lock()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o777])
def test_a_folder_that_others_can_open_is_refused(tmp_path: Path, environment: dict[str, str], mode: int) -> None:
    folder = Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch"
    folder.mkdir()
    folder.chmod(mode)

    with pytest.raises(NoDaemonError, match="can be opened by other users"):
        DaemonAddress.of(config(tmp_path), environment)


def test_a_folder_of_another_user_is_refused_and_nothing_is_made_in_their_session(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing says otherwise, the superuser has the variables of the user who became it."""
    (tmp_path / "toolsearch-4711").mkdir(mode=0o700)
    monkeypatch.setattr(addresses, "_SHARED_FOLDER", tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: 4_711)

    with pytest.raises(NoDaemonError, match="toolsearch-4711 is not a folder of this user"):
        DaemonAddress.of(config(tmp_path), environment)
    assert not (Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch").exists()


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(NoDaemonError, match="is not a folder of this user"):
        DaemonAddress.of(config(tmp_path), environment)


def test_without_a_folder_of_the_session_it_is_one_of_the_user_beside_those_of_others(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("tmp", "relative"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(addresses, "_SHARED_FOLDER", tmp_path / "tmp")
    for missing in (str(tmp_path / "none"), "relative"):
        address = DaemonAddress.of(config(tmp_path), {**environment, "XDG_RUNTIME_DIR": missing})
        assert address.path.parent == tmp_path / "tmp" / f"toolsearch-{os.getuid()}"


def test_a_file_that_is_no_json_has_no_place(tmp_path: Path, environment: dict[str, str]) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{")

    with pytest.raises(NoDaemonError, match="is no JSON"):
        DaemonAddress.of(path, environment)


@pytest.mark.usefixtures("processes")
def test_a_path_that_is_too_long_for_a_socket_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    address = DaemonAddress.of(config(tmp_path), {**environment, "XDG_RUNTIME_DIR": str(long)})

    with pytest.raises(NoDaemonError, match="too long"):
        address.listen()


def test_without_such_sockets_there_is_no_place(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")

    with pytest.raises(NoDaemonError, match="no sockets that only one user can open"):
        DaemonAddress.of(config(tmp_path), environment)


@pytest.mark.usefixtures("processes")
def test_one_process_has_the_lock_and_a_socket_that_one_before_has_left_is_taken_over(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    address = DaemonAddress.of(config(tmp_path), environment)
    lock = address.lock()
    assert lock is not None
    assert stat.S_IMODE(os.fstat(lock).st_mode) == 0o600
    assert not os.get_inheritable(lock)
    assert address.lock() is None
    with address.listen():
        pass
    assert address.path.exists()  # as after a kill
    assert address.connect() is None

    with address.listen() as listening:
        assert stat.S_IMODE(address.path.stat().st_mode) == 0o600
        reached = address.connect()
        assert reached is not None
        reached.close()
        listening.accept()[0].close()
    address.remove_socket(lock)
    address.remove_lock(lock)
    os.close(lock)
    again = address.lock()
    assert again is not None
    os.close(again)


def test_a_lock_that_was_removed_is_none(tmp_path: Path, environment: dict[str, str]) -> None:
    """Whoever had the lock has ended meanwhile, and a third process may have made a new file."""
    address = DaemonAddress.of(config(tmp_path), environment)
    held = address.lock()
    assert held is not None
    address.remove_lock(held)
    other = address.lock()
    assert other is not None  # of a new file
    assert address.lock() is None
    for handle in (held, other):
        os.close(handle)


def test_a_lock_that_is_removed_while_it_is_taken_is_none(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that had it has ended in between, and whoever comes next would have a lock beside this one."""
    address = DaemonAddress.of(config(tmp_path), environment)
    take = fcntl.flock

    def late(handle: int, how: int) -> None:
        address.remove_lock(handle)
        take(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert address.lock() is None


@pytest.mark.usefixtures("processes")
def test_a_process_whose_files_were_removed_leaves_those_of_its_successor_alone(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Cleaners of temporary folders remove files of processes that run."""
    address = DaemonAddress.of(config(tmp_path), environment)
    lock = address.lock()
    assert lock is not None
    with address.listen():
        assert address.is_here(lock)
        address.remove_socket(lock)
        address.remove_lock(lock)
        successors = address.lock()
        assert successors is not None
        with address.listen():
            assert not address.is_here(lock)
            address.remove_socket(lock)
            address.remove_lock(lock)
            assert address.is_here(successors)
            assert address.lock() is None
    for handle in (lock, successors):
        os.close(handle)


@pytest.mark.usefixtures("processes")
def test_the_socket_of_another_user_is_refused(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = DaemonAddress.of(config(tmp_path), environment)
    with address.listen():
        monkeypatch.setattr(os, "getuid", lambda: 4_711)
        with pytest.raises(NoDaemonError, match="another user listens"):
            address.connect()


@pytest.mark.usefixtures("processes")
def test_a_process_whose_socket_alone_was_removed_is_no_longer_found(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    address = DaemonAddress.of(config(tmp_path), environment)
    lock = address.lock()
    assert lock is not None
    with address.listen():
        assert address.is_here(lock)
        address.path.unlink()
        assert not address.is_here(lock)
    os.close(lock)


@pytest.mark.usefixtures("processes")
def test_a_process_is_asked_only_where_one_of_this_user_listens(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = DaemonAddress.of(config(tmp_path), environment)
    with pytest.raises(NoDaemonError, match="no process listens"):
        asked(address.path, "stop")
    with address.listen():
        monkeypatch.setattr(os, "getuid", lambda: 4_711)
        with pytest.raises(NoDaemonError, match="another user listens"):
            asked(address.path, "stop")


def test_where_the_system_does_not_tell_the_user_at_the_other_end_the_folder_is_the_guard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, there = socket.socketpair()
    with here, there:
        assert peer_of(here) == Peer(os.getpid(), os.getuid())
        monkeypatch.delattr(socket, "SO_PEERCRED")
        monkeypatch.setattr(sys, "platform", "plan9")
        assert peer_of(here) == Peer()
        assert is_own(here)
