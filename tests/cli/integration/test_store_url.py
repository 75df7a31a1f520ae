"""``--store URL`` for every command that opens a store: what it does, and that it never shows a password."""

import base64
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from tests.kit.commands import Ran
from tests.kit.lines import has_line
from tests.kit.postgres import PostgresServer
from tests.kit.service_process import ServiceProcess, service_process
from tests.kit.storage_contracts.storage import contents, fill
from toolsearch.service.data_folder import back_up, restore
from toolsearch.service.sealing import open_seal
from toolsearch.storage.postgres.place import Inspection, PostgresStorage, warnings_of
from toolsearch.storage.postgres.schema import VERSION
from toolsearch.storage.records import THE_SERVICE
from toolsearch.storage.sqlite.place import SqliteStorage

PASSWORD = "hunter2&more"
QUOTED = "hunter2%26more"
OLD, NEW = (base64.b64encode(character * 32).decode() for character in (b"o", b"n"))
WRONG = {
    "password": "postgresql://locked:{}@127.0.0.1:{port}/postgres",
    "host": "postgresql://locked:{}@nowhere.invalid/postgres",
    "port": "postgresql://locked:{}@127.0.0.1:1/postgres",
    "database": "postgresql://postgres:{}@127.0.0.1:{port}/nothing",
    "parameter": "postgresql://locked:{}@127.0.0.1:{port}/postgres?sslmod=require",
}


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_database(is_empty=True)


@pytest.fixture
def locked(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """The server, with a role that needs a password."""
    (file,) = postgres.execute("SHOW hba_file")[0]
    [(rules,)] = postgres.execute("SELECT pg_read_file(setting) FROM pg_settings WHERE name = 'hba_file'")
    rule = "host all locked 127.0.0.1/32 scram-sha-256"
    write = f"COPY (SELECT regexp_split_to_table($text${{}}$text$, '\\n')) TO '{file}'"
    postgres.execute("CREATE ROLE locked LOGIN PASSWORD 'another one'")
    postgres.execute(write.format(f"{rule}\n{rules}"))
    postgres.execute("SELECT pg_reload_conf()")
    yield postgres
    postgres.execute(write.format(rules))
    postgres.execute("SELECT pg_reload_conf()")
    postgres.execute("DROP ROLE locked")


@pytest.fixture
def checked(command: Callable[..., Ran], tmp_path: Path) -> Callable[[str], tuple[dict[str, tuple[str, str]], int]]:
    """What a check finds, by what was looked at, and the exit code."""

    def checked(url: str) -> tuple[dict[str, tuple[str, str]], int]:
        ran = command("serve", "--check", "--json", "--data", str(tmp_path / "data"), "--store", url)
        return {each["subject"]: (each["level"], each["text"]) for each in ran.json["findings"]}, ran.code

    return checked


def tables(postgres: PostgresServer, url: str) -> int:
    query = "SELECT count(*) FROM pg_tables WHERE schemaname = 'toolsearch'"
    return int(postgres.execute(query, database=url.rpartition("/")[2])[0][0])


# What is never shown


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("by_environment", [True, False])
def test_no_command_shows_the_password_of_a_url_that_does_not_work(
    locked: PostgresServer,
    command: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    wrong: str,
    by_environment: bool,
) -> None:
    url = wrong.format(QUOTED, port=locked.port)
    with closing(SqliteStorage(tmp_path / "kept.db")) as storage:
        storage.backup(tmp_path / "backup.db")
    options = () if by_environment else ("--store", url)
    if by_environment:
        monkeypatch.setenv("TOOLSEARCH_STORE", url)
    caplog.set_level("DEBUG")
    data = ("--data", str(tmp_path / "data"), *options)
    for arguments in (
        ("serve", "--bind", "127.0.0.1:0", "--log-level", "debug", *data),
        ("serve", "--check", *data),
        ("backup", "--to", str(tmp_path / "copy.db"), *data),
        ("restore", str(tmp_path / "backup.db"), *data),
        ("reseal", *data),
    ):
        ran = command(*arguments)
        assert ran.code in (2, 3)
        told = ran.out + ran.err + caplog.text
        assert not any(part in told for part in ("hunter2", QUOTED, PASSWORD))
        assert "postgresql://locked" not in told
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize(
    "password", ["hun@ter2", "hun/ter2", "1/ter2", "hun:1/ter2@x", "hun%zzter2", "hun ter2", "hun@ter2/x"]
)
def test_a_password_with_characters_that_urls_use_is_refused_rather_than_taken_for_a_host(
    command: Callable[..., Ran], tmp_path: Path, password: str
) -> None:
    ran = command("reseal", "--data", str(tmp_path), "--store", f"postgresql://user:{password}@127.0.0.1:1/name")

    assert ran.code == 2
    assert "percent-encode" in ran.err
    assert "ter2" not in ran.err.replace("percent-encode", "")
    assert "hun" not in ran.err


def test_a_wrong_password_is_told_as_one(locked: PostgresServer, command: Callable[..., Ran], tmp_path: Path) -> None:
    ran = command("backup", "--to", str(tmp_path / "x"), "--store", WRONG["password"].format(QUOTED, port=locked.port))

    assert 'password authentication failed for user "locked"' in ran.err
    assert f"postgres at 127.0.0.1:{locked.port}" in ran.err


# What --check tells


def test_a_check_of_an_empty_database_changes_nothing(
    any_postgres: PostgresServer, checked: Callable[[str], tuple[dict[str, tuple[str, str]], int]]
) -> None:
    url = any_postgres.new_database(is_empty=True)
    findings, code = checked(url)

    assert (findings["store"][0], code) == ("ok", 0)
    assert findings["store"][1].startswith("PostgreSQL 1")
    assert "no tables yet" in findings["store"][1]
    assert findings["pgvector"][0] == "ok"
    assert tables(any_postgres, url) == 0


def test_a_check_tells_of_pgvector(
    postgres: PostgresServer, url: str, checked: Callable[[str], tuple[dict[str, tuple[str, str]], int]]
) -> None:
    assert "by CREATE EXTENSION vector" in checked(url)[0]["pgvector"][1]

    postgres.execute("CREATE EXTENSION vector", database=url.rpartition("/")[2])
    assert checked(url)[0]["pgvector"][1].startswith("version 0.")


def test_a_check_tells_whether_the_secret_key_is_that_of_the_store(
    url: str, checked: Callable[[str], tuple[dict[str, tuple[str, str]], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    PostgresStorage(url).close()
    assert "needs the same" in checked(url)[0]["secret key"][1]

    with closing(PostgresStorage(url)) as storage:
        open_seal({"TOOLSEARCH_SECRET_KEY": OLD}, Path("unused"), storage.records, clock=lambda: 1.0)
    monkeypatch.setenv("TOOLSEARCH_SECRET_KEY", OLD)
    assert checked(url)[0]["secret key"] == ("ok", "opens what it has sealed")
    for given in (NEW, ""):
        monkeypatch.setenv("TOOLSEARCH_SECRET_KEY", given)
        findings, code = checked(url)
        assert (findings["secret key"][0], code) == ("error", 3)


def test_a_check_tells_what_a_start_would_end_with(
    postgres: PostgresServer, url: str, checked: Callable[[str], tuple[dict[str, tuple[str, str]], int]]
) -> None:
    PostgresStorage(url).close()
    name = url.rpartition("/")[2]
    postgres.execute("INSERT INTO toolsearch.versions VALUES (999, 999)", database=name)
    findings, code = checked(url)
    assert (findings["store"][0], code) == ("error", 3)
    assert "use the newer toolsearch" in findings["store"][1]

    postgres.execute("DELETE FROM toolsearch.versions WHERE version = 999", database=name)
    findings, code = checked(url)
    assert (findings["store"][0], findings["secret key"][0], code) == ("ok", "ok", 0)
    assert findings["store"][1].endswith(f"version {VERSION}")
    assert "not there yet" in findings["secret key"][1]
    assert postgres.execute("SELECT version FROM toolsearch.versions", database=name) == [(VERSION,)]

    other = postgres.new_database(is_empty=True)
    postgres.execute("CREATE ROLE visitor LOGIN")
    try:
        findings, code = checked(other.replace("postgres@", "visitor@"))
    finally:
        postgres.execute("DROP ROLE visitor")
    assert (findings["store"][0], code) == ("error", 3)
    assert "make the schema toolsearch" in findings["store"][1]


def test_a_server_elsewhere_without_encryption_is_a_warning() -> None:
    here = Inspection("PostgreSQL 18.4", "x at y:1", 1, None, None, is_encrypted=False, is_remote=False)
    warnings = [
        [subject for subject, _ in warnings_of(replace(here, is_remote=is_remote, is_encrypted=is_encrypted))]
        for is_remote, is_encrypted in ((False, False), (True, True), (True, False))
    ]

    assert warnings == [[], [], ["store's encryption"]]


# Starts


def test_two_services_that_start_at_once_tell_one_key(postgres: PostgresServer, url: str, tmp_path: Path) -> None:
    with (
        service_process(tmp_path / "one", key="", TOOLSEARCH_STORE=url, TOOLSEARCH_SECRET_KEY=OLD) as one,
        service_process(tmp_path / "two", key="", TOOLSEARCH_STORE=url, TOOLSEARCH_SECRET_KEY=OLD) as two,
    ):
        told = [ended(each) for each in (one, two)]

    assert sorted(text.count("TOOLSEARCH_KEY=ts_") for text in told) == [0, 1]
    with closing(PostgresStorage(url)) as storage:
        assert [each.id for each in storage.records.page(THE_SERVICE, "tenant", limit=9, at_s=1.0)] == ["default"]
        assert len(storage.keys.page("default", limit=9)) == 1


def ended(started: ServiceProcess) -> str:
    """What the service printed after its URL."""
    started.process.send_signal(signal.SIGTERM)
    return started.process.communicate()[0]


def test_a_second_machine_without_the_key_is_told_what_to_do(
    url: str, command: Callable[..., Ran], tmp_path: Path
) -> None:
    with service_process(tmp_path / "one", key="", TOOLSEARCH_STORE=url):
        ran = command("serve", "--bind", "127.0.0.1:0", "--data", str(tmp_path / "two"), "--store", url)

    assert ran.code == 3
    assert "need the same key" in ran.err
    assert not (tmp_path / "two" / "secret.key").exists()


def test_a_second_service_in_the_same_folder_is_kept_out(url: str, command: Callable[..., Ran], tmp_path: Path) -> None:
    with service_process(tmp_path, key="", TOOLSEARCH_STORE=url):
        ran = command("serve", "--bind", "127.0.0.1:0", "--data", str(tmp_path), "--store", url)

    assert ran.code == 3
    assert "another process serves" in ran.err


# Moving


def test_a_service_moves_to_postgresql_and_back_with_all_that_its_clients_know(url: str, tmp_path: Path) -> None:
    """Keys, sessions with what they discovered, ETags, cursors."""
    tools = [
        {"name": f"t{n}", "description": f"Send parcel {n}.", "input_schema": {"type": "object"}} for n in range(60)
    ]
    with service_process(tmp_path / "one", TOOLSEARCH_SECRET_KEY=OLD) as started, started.client() as client:
        key = started.key
        client.post("/v1/catalogs", json={"name": "office"}).raise_for_status()
        client.post("/v1/catalogs/office/tools", json=tools).raise_for_status()
        session = client.post("/v1/sessions", json={"catalog": "office"}).raise_for_status().json()["id"]
        client.post(f"/v1/sessions/{session}/search", json={"queries": ["parcel 7"]}).raise_for_status()
        known = known_to(client, session)
        cursor = client.get("/v1/catalogs/office/tools?limit=25").json()["next"]
        rest = client.get(f"/v1/catalogs/office/tools?limit=25&after={cursor}").raise_for_status().json()
    assert "t7" in str(known)

    def check(started: ServiceProcess) -> None:
        with started.client() as client:
            assert known_to(client, session) == known
            assert client.get(f"/v1/catalogs/office/tools?limit=25&after={cursor}").json() == rest
            client.post(f"/v1/sessions/{session}/search", json={"queries": ["parcel 7"]}).raise_for_status()

    moved(tmp_path / "one", None, tmp_path / "two", url)
    with service_process(tmp_path / "two", key=key, TOOLSEARCH_SECRET_KEY=OLD, TOOLSEARCH_STORE=url) as started:
        check(started)
    moved(tmp_path / "two", url, tmp_path / "three", None)
    with service_process(tmp_path / "three", key=key, TOOLSEARCH_SECRET_KEY=OLD) as started:
        check(started)


def known_to(client: httpx2.Client, session: str) -> list[object]:
    catalog = client.get("/v1/catalogs/office").raise_for_status()
    tools = client.get(f"/v1/sessions/{session}/tools?format=openai").raise_for_status()
    return [catalog.headers["etag"], tools.json(), client.get("/v1/me").raise_for_status().json()]


def moved(data: Path, store: str | None, new_data: Path, new_store: str | None) -> None:
    copy = new_data.with_suffix(".db")
    back_up(data, copy, store=store)
    restore(copy, new_data, store=new_store)


def test_the_commands_copy_from_and_to_postgresql_and_tell_how_far_they_are(
    url: str, command: Callable[..., Ran], tmp_path: Path
) -> None:
    with closing(PostgresStorage(url)) as storage:
        fill(storage, "a")
        expected = contents(storage, "a")
    copy, data = str(tmp_path / "copy.db"), str(tmp_path / "data")

    ran = command("backup", "--to", copy, "--store", url)
    assert ran.code == 0
    assert "contents: 1 of 1 rows\n" in ran.err
    assert has_line(ran.err, "copy.db has", "secret key (version 1)")
    assert command("restore", copy, "--data", data).code == 0
    with closing(SqliteStorage(tmp_path / "data" / "toolsearch.db")) as storage:
        assert contents(storage, "a") == expected
    ran = command("restore", copy, "--store", url)
    assert ran.code == 3
    assert "holds data already" in ran.err
    assert not (tmp_path / "toolsearch-data").exists()


def test_everything_in_postgresql_is_sealed_anew(
    url: str, command: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(PostgresStorage(url)) as storage:
        seal = open_seal({"TOOLSEARCH_SECRET_KEY": OLD}, tmp_path, storage.records, clock=lambda: 1.0)
        storage.records.put("a", "source", "x", {"sealed": seal.seal("secret")}, over=0, at_s=1.0)
    options = ("--data", str(tmp_path), "--store", url)

    monkeypatch.setenv("TOOLSEARCH_SECRET_KEY", NEW)
    assert command("reseal", *options).code == 3
    monkeypatch.setenv("TOOLSEARCH_SECRET_KEY", f"{NEW},{OLD}")
    ran = command("reseal", *options)
    assert (ran.code, "Sealed anew: 2." in ran.err) == (0, True)
    monkeypatch.setenv("TOOLSEARCH_SECRET_KEY", NEW)
    assert command("reseal", *options).code == 0


def test_nothing_is_sealed_anew_where_nothing_is(
    postgres: PostgresServer, url: str, command: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = command("reseal", "--data", str(tmp_path), "--store", url)

    assert ran.code == 3
    assert "no service keeps anything" in ran.err
    assert tables(postgres, url) == 0
