"""Where a background process is reached: by whom, and with what in common."""

import fcntl
import json
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from toolsearch.gateway.daemon import place as places
from toolsearch.gateway.daemon.place import NoPlaceError, Place
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
    return Place.of(path, environment | more).identity


def test_clients_of_one_file_and_one_environment_have_one_place(tmp_path: Path, environment: dict[str, str]) -> None:
    path = config(tmp_path, env={"TOKEN": "${TOKEN}"})
    place = Place.of(path, environment)

    assert place.path.parent == Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch"
    assert stat.S_IMODE(place.path.parent.stat().st_mode) == 0o700
    assert Place.of(path, environment).path == place.path
    assert identity(path, environment, OTHER="2") == place.identity
    assert "one" not in place.path.name


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
    place = identity(config(tmp_path, section), environment)
    (tmp_path / "secret").write_text("two")

    assert identity(config(tmp_path, section), environment) == place
    for other in ("${file:other}", "${keyring:vault/alice}"):
        section = {"principals": {"alice": {"token": other}}}
        assert identity(config(tmp_path, section), environment) != place


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


def test_another_file_with_the_same_content_has_another_place(tmp_path: Path, environment: dict[str, str]) -> None:
    path = config(tmp_path)
    other = tmp_path / "other.json"
    other.write_bytes(path.read_bytes())

    assert identity(other, environment) != identity(path, environment)


def test_another_installation_has_another_place(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config(tmp_path)
    here = identity(path, environment)
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "__init__.py").touch()
    monkeypatch.setattr(places, "_PROGRAM", newer)

    assert identity(path, environment) != here


def test_the_digest_has_a_key_that_only_its_user_can_read(tmp_path: Path, environment: dict[str, str]) -> None:
    path = config(tmp_path)
    first = identity(path, environment)
    key = Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch" / "key"
    assert (stat.S_IMODE(key.stat().st_mode), key.stat().st_size) == (0o600, 32)

    key.write_bytes(bytes(32))
    assert identity(path, environment) != first


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o777])
def test_a_folder_that_others_can_open_is_refused(tmp_path: Path, environment: dict[str, str], mode: int) -> None:
    folder = Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch"
    folder.mkdir()
    folder.chmod(mode)

    with pytest.raises(NoPlaceError, match="can be opened by other users"):
        Place.of(config(tmp_path), environment)


def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: 4_711)

    with pytest.raises(NoPlaceError, match="is not a folder of this user"):
        Place.of(config(tmp_path), environment)


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (Path(environment["XDG_RUNTIME_DIR"]) / "toolsearch").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(NoPlaceError, match="is not a folder of this user"):
        Place.of(config(tmp_path), environment)


def test_without_a_folder_of_the_session_it_is_one_of_the_user_beside_those_of_others(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "tmp").mkdir()
    place = Place.of(config(tmp_path), {**environment, "XDG_RUNTIME_DIR": "", "TMPDIR": str(tmp_path / "tmp")})

    assert place.path.parent == tmp_path / "tmp" / f"toolsearch-{os.getuid()}"


def test_a_file_that_is_no_json_has_no_place(tmp_path: Path, environment: dict[str, str]) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{")

    with pytest.raises(NoPlaceError, match="is no JSON"):
        Place.of(path, environment)


@pytest.mark.usefixtures("processes")
def test_a_path_that_is_too_long_for_a_socket_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    place = Place.of(config(tmp_path), {**environment, "XDG_RUNTIME_DIR": str(long)})

    with pytest.raises(NoPlaceError, match="too long"):
        place.listen()


def test_without_such_sockets_there_is_no_place(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")

    with pytest.raises(NoPlaceError, match="no sockets that only one user can open"):
        Place.of(config(tmp_path), environment)


@pytest.mark.usefixtures("processes")
def test_one_process_has_the_lock_and_a_socket_that_one_before_has_left_is_taken_over(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    place = Place.of(config(tmp_path), environment)
    lock = place.lock()
    assert lock is not None
    assert place.lock() is None
    with place.listen():
        pass
    assert place.path.exists()  # as after a kill
    assert place.connect() is None

    with place.listen() as listening:
        assert stat.S_IMODE(place.path.stat().st_mode) == 0o600
        reached = place.connect()
        assert reached is not None
        reached.close()
        listening.accept()[0].close()
    place.leave(lock)
    place.give_up(lock)
    os.close(lock)
    again = place.lock()
    assert again is not None
    os.close(again)


def test_a_lock_that_was_removed_is_none(tmp_path: Path, environment: dict[str, str]) -> None:
    """Whoever had the lock has ended meanwhile, and a third process may have made a new file."""
    place = Place.of(config(tmp_path), environment)
    held = place.lock()
    assert held is not None
    place.give_up(held)
    other = place.lock()
    assert other is not None  # of a new file
    assert place.lock() is None
    for handle in (held, other):
        os.close(handle)


def test_a_lock_that_is_removed_while_it_is_taken_is_none(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that had it has ended in between, and whoever comes next would have a lock beside this one."""
    place = Place.of(config(tmp_path), environment)
    take = fcntl.flock

    def late(handle: int, how: int) -> None:
        place.give_up(handle)
        take(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert place.lock() is None


@pytest.mark.usefixtures("processes")
def test_a_process_whose_files_were_removed_leaves_those_of_its_successor_alone(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Cleaners of temporary folders remove files of processes that run."""
    place = Place.of(config(tmp_path), environment)
    lock = place.lock()
    assert lock is not None
    with place.listen():
        assert place.is_here(lock)
        place.leave(lock)
        place.give_up(lock)
        successors = place.lock()
        assert successors is not None
        with place.listen():
            assert not place.is_here(lock)
            place.leave(lock)
            place.give_up(lock)
            assert place.is_here(successors)
            assert place.lock() is None
    for handle in (lock, successors):
        os.close(handle)


@pytest.mark.usefixtures("processes")
def test_the_socket_of_another_user_is_refused(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place.of(config(tmp_path), environment)
    with place.listen():
        monkeypatch.setattr(os, "getuid", lambda: 4_711)
        with pytest.raises(NoPlaceError, match="another user listens"):
            place.connect()
