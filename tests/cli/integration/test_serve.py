"""``toolsearch serve``: what it prints, what it checks, and its exit codes."""

import socket
import sqlite3

import pytest

from tests.kit.service_process import service_process


@pytest.fixture
def checked(command):
    """The findings of a check, by what was looked at, and the exit code."""

    def checked(*options):
        ran = command("serve", "--check", "--json", *options)
        return {each["subject"]: (each["level"], each["text"]) for each in ran.json["findings"]}, ran.code

    return checked


def test_a_check_before_the_first_start_changes_nothing(checked, tmp_path):
    findings, code = checked("--data", str(tmp_path / "data"))

    assert code == 0
    assert {level for level, _ in findings.values()} == {"ok"}
    assert "the first start makes it" in findings["store"][1]
    assert not (tmp_path / "data").exists()


def test_a_check_shows_the_same_to_people(command, tmp_path):
    ran = command("serve", "--check", "--data", str(tmp_path))

    assert ran.code == 0
    assert "the first start makes it" in ran.out


def test_a_port_that_is_taken_is_told_in_one_line_that_says_what_to_do(command, checked, tmp_path):
    """By a start and by a check, which ends with the same exit code."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = command("serve", "--data", str(tmp_path / "data"), "--bind", address)
        findings, code = checked("--data", str(tmp_path / "data"), "--bind", address)

    said = (
        f"cannot listen at {address}: another program uses this port; end that one, or name another port by --bind "
        "(port 0: any free one)"
    )
    assert ran.err.splitlines() == [f"error [bad_setting]: {said}"]
    assert findings["address"] == ("error", said)
    assert (ran.code, code) == (2, 2)
    assert not (tmp_path / "data").exists()


def test_a_check_tells_of_a_store_that_is_damaged(checked, tmp_path):
    (tmp_path / "toolsearch.db").write_bytes(b"this is no database" * 100)
    findings, code = checked("--data", str(tmp_path))

    assert (findings["store"][0], code) == ("error", 3)
    assert "restore it from a backup" in findings["store"][1]


def test_a_check_tells_of_a_store_of_a_newer_version(checked, tmp_path):
    with sqlite3.connect(tmp_path / "toolsearch.db") as database:
        database.execute("PRAGMA user_version = 1000")
    database.close()
    findings, code = checked("--data", str(tmp_path))

    assert (findings["store"][0], code) == ("error", 3)
    assert "newer toolsearch" in findings["store"][1]


def test_a_check_tells_of_a_path_that_is_no_folder(checked, tmp_path):
    (tmp_path / "data").write_text("")
    findings, code = checked("--data", str(tmp_path / "data"))

    assert (findings["folder"][0], code) == ("error", 2)


def test_bound_to_every_address_it_has_to_know_its_names(checked, command, tmp_path, monkeypatch):
    everywhere = ("--data", str(tmp_path), "--bind", "0.0.0.0:0")
    findings, code = checked(*everywhere)
    assert (findings["address"][0], code) == ("error", 2)

    started = command("serve", *everywhere)
    assert started.code == 2
    assert "serve.public_url" in started.err

    monkeypatch.setenv("TOOLSEARCH_SERVE__PUBLIC_URL", "https://tools.example.com")
    findings, code = checked(*everywhere)
    assert (findings["address"][0], "encryption" in findings, code) == ("ok", False, 0)


def test_other_machines_without_tls_are_a_warning(checked, tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSEARCH_SERVE__ALLOWED_HOSTS", "tools.example.com, tools")
    findings, code = checked("--data", str(tmp_path), "--bind", "0.0.0.0:0")

    assert (findings["encryption"][0], code) == ("warning", 0)


@pytest.mark.parametrize("bind", ["8080", "127.0.0.1:", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_refused(command, bind):
    ran = command("serve", "--bind", bind)

    assert ran.code == 2
    assert "--bind needs HOST:PORT" in ran.err


def test_an_address_that_is_taken_is_told_and_no_store_is_made(command, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = command("serve", "--data", str(tmp_path / "data"), "--bind", f"127.0.0.1:{taken.getsockname()[1]}")

    assert ran.code == 2
    assert "--bind" in ran.err
    assert not (tmp_path / "data").exists()


def test_a_second_process_is_kept_out_of_the_folder(command, tmp_path):
    with service_process(tmp_path):
        ran = command("serve", "--data", str(tmp_path), "--bind", "127.0.0.1:0")

    assert ran.code == 3
    assert "another process serves" in ran.err


def test_it_says_that_it_is_ready_until_it_ends(tmp_path):
    with service_process(tmp_path) as started, started.client() as client:
        assert [client.get(path).json() for path in ("/healthz", "/readyz")] == [{"status": "ok"}] * 2


def test_an_operator_without_a_key_makes_one_beside_the_service_and_the_audit_tells_of_it(command, tmp_path):
    with service_process(tmp_path):
        made = command("keys", "--data", str(tmp_path), "--json")
        key = command("keys", "--data", str(tmp_path)).out.removeprefix("TOOLSEARCH_KEY=").strip()
    with service_process(tmp_path, key=key) as started, started.client() as client:
        me, audit = client.get("/v1/me").json(), client.get("/v1/audit").json()

    assert (me["tenant"], me["operator"], "admin" in me["scopes"]) == ("default", True, True)
    told = [(each["key_id"], each["action"], each["subject"]) for each in audit["items"]]
    assert ("toolsearch keys", "make operator's key", me["key_id"]) in told
    assert (len(told), made.json["key"][:3]) == (2, "ts_")


def test_keys_are_made_only_where_a_service_keeps_its_data(command, tmp_path):
    ran = command("keys", "--data", str(tmp_path))

    assert (ran.code, list(tmp_path.iterdir())) == (3, [])
    assert "name its folder by --data" in ran.err


@pytest.mark.parametrize("is_gone", [True, False], ids=["missing", "emptied"])
def test_a_store_that_is_gone_beside_its_secret_key_is_no_first_start(checked, command, tmp_path, is_gone):
    with service_process(tmp_path):
        pass
    for file in tmp_path.glob("toolsearch.db*"):
        file.unlink()
    if not is_gone:
        (tmp_path / "toolsearch.db").touch()
    ran = command("serve", "--data", str(tmp_path), "--bind", "127.0.0.1:0")
    findings, code = checked("--data", str(tmp_path))

    assert (ran.code, ran.out, code, findings["store"]) == (3, "", 3, ("error", findings["store"][1]))
    assert all(f"move the {what} away" in ran.err for what in ("empty store", "secret key"))
    assert sum(each.stat().st_size for each in tmp_path.glob("toolsearch.db*")) == 0


def test_a_check_tells_that_the_secret_key_is_lost(checked, tmp_path):
    with service_process(tmp_path):
        pass
    assert checked("--data", str(tmp_path))[0]["secret key"] == ("ok", "opens what it has sealed")

    (tmp_path / "secret.key").unlink()
    findings, code = checked("--data", str(tmp_path))
    assert (findings["secret key"][0], code != 0) == ("error", True)
