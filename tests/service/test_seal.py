"""What is encrypted in the store: which keys open it, where they come from, and how they are exchanged."""

import base64
import logging
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from toolsearch.errors import BadSettingError, SealError
from toolsearch.service.sealing import Resealed, forget_lost_key, open_seal, reseal_all
from toolsearch.storage.records import THE_SERVICE, Record
from toolsearch.storage.seal import KEY_FILE, Seal, is_sealed, seal_of_folder
from toolsearch.storage.sqlite.place import SqliteStorage

OLD, NEW = b"o" * 32, b"n" * 32
OLD_TEXT, NEW_TEXT = (base64.b64encode(key).decode() for key in (OLD, NEW))
TOKEN = "hunter2-is-the-token-of-an-upstream-server"


@pytest.fixture
def storage(tmp_path: Path) -> SqliteStorage:
    return SqliteStorage(tmp_path / "kept.db")


def opened(storage: SqliteStorage, **environ: str) -> Seal:
    variables = {f"TOOLSEARCH_SECRET_{name.upper()}": value for name, value in environ.items()}
    return open_seal(variables, storage.path.parent, storage.records, clock=lambda: 1.0)


# Sealing


def test_what_is_sealed_can_be_opened_and_looks_different_each_time() -> None:
    seal = Seal([OLD])

    assert seal.open(seal.seal("pässword")) == "pässword"
    assert seal.seal("same") != seal.seal("same")
    assert is_sealed(seal.seal(""))
    assert not is_sealed("pässword")


def test_any_of_the_keys_opens_and_the_first_seals() -> None:
    both = Seal([NEW, OLD])

    assert both.open(Seal([OLD]).seal("x")) == "x"
    assert Seal([NEW]).open(both.seal("x")) == "x"
    assert Seal([NEW]).open(both.reseal(Seal([OLD]).seal("x"))) == "x"


@pytest.mark.parametrize(
    "sealed",
    ["", "sealed:", "hunter2", "sealed:hunter2", pytest.param(Seal([NEW]).seal(TOKEN), id="sealed with another key")],
)
def test_what_was_not_sealed_with_a_known_key_is_refused_and_no_secret_is_named(sealed: str) -> None:
    with pytest.raises(SealError, match=r"secret\.key") as refused:
        Seal([OLD]).open(sealed)
    assert "hunter2" not in str(refused.value)
    assert OLD_TEXT not in str(refused.value)


def test_a_sealed_text_that_somebody_changed_is_refused() -> None:
    sealed = Seal([OLD]).seal("x")
    at = len(sealed) // 2
    changed = sealed[:at] + ("A" if sealed[at] != "A" else "B") + sealed[at + 1 :]

    with pytest.raises(SealError):
        Seal([OLD]).open(changed)


def test_keys_for_other_purposes_follow_from_the_keys_and_tell_nothing_of_each_other() -> None:
    first, second = Seal([NEW, OLD]).derived("sign sessions")

    assert (first,) == Seal([NEW]).derived("sign sessions")
    assert (second,) == Seal([OLD]).derived("sign sessions")
    assert len({first, second, NEW, OLD, *Seal([NEW]).derived("sign cookies")}) == 5


# Where keys come from


def test_the_first_start_makes_a_key_for_its_owner_alone_and_says_so_without_showing_it(
    storage: SqliteStorage, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        seal = opened(storage)
    file = storage.path.parent / KEY_FILE

    assert stat.filemode(file.stat().st_mode) == "-rw-------"
    assert str(file) in caplog.text
    assert file.read_text().strip() not in caplog.text
    assert opened(storage).open(seal.seal("x")) == "x"


def test_keys_are_given_in_either_alphabet_of_base64_in_the_environment_or_a_file(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    key = b"\xff" * 32
    ordinary, urlsafe = base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode()
    assert ordinary != urlsafe
    sealed = Seal([key]).seal("x")
    (tmp_path / "keys.txt").write_text(f"{ordinary}\n{OLD_TEXT}\n")

    assert opened(storage, key=urlsafe).open(sealed) == "x"
    assert opened(storage, key=f"{OLD_TEXT}, {ordinary}").open(sealed) == "x"
    assert opened(storage, key_file=str(tmp_path / "keys.txt")).open(sealed) == "x"
    assert opened(storage, key=ordinary, key_file="missing").open(sealed) == "x"
    assert not (storage.path.parent / KEY_FILE).exists()


@pytest.mark.parametrize(
    "wrong",
    [
        "hunter2",
        pytest.param(OLD_TEXT[:-5], id="too short"),
        pytest.param(Fernet.generate_key().decode() + "AAAA", id="too long"),
        "päss",
    ],
)
def test_what_is_no_key_is_refused_with_how_to_make_one_and_not_shown(storage: SqliteStorage, wrong: str) -> None:
    with pytest.raises(BadSettingError, match=r"secret key 2 of 2 in TOOLSEARCH_SECRET_KEY .*openssl rand") as refused:
        opened(storage, key=f"{OLD_TEXT},{wrong}")
    assert wrong not in str(refused.value)


def test_a_file_of_keys_that_is_missing_or_empty_is_refused(storage: SqliteStorage, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch(mode=0o600)

    with pytest.raises(BadSettingError, match=r"missing\.txt cannot be read: No such file"):
        opened(storage, key_file=str(tmp_path / "missing.txt"))
    with pytest.raises(BadSettingError, match=r"no secret key in .*empty\.txt"):
        opened(storage, key_file=str(tmp_path / "empty.txt"))


def test_a_file_of_keys_that_others_can_read_is_told_of(
    storage: SqliteStorage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "keys.txt").write_text(OLD_TEXT)
    for mode, is_told in ((0o600, False), (0o640, True)):
        (tmp_path / "keys.txt").chmod(mode)
        with caplog.at_level(logging.WARNING):
            opened(storage, key_file=str(tmp_path / "keys.txt"))
        assert ("chmod 600" in caplog.text) == is_told


def test_data_are_never_opened_with_another_key_than_they_were_sealed_with(storage: SqliteStorage) -> None:
    opened(storage, key=OLD_TEXT)

    with pytest.raises(SealError):
        opened(storage, key=NEW_TEXT)
    with pytest.raises(SealError):
        opened(storage)
    assert not (storage.path.parent / KEY_FILE).exists()
    assert opened(storage, key=f"{NEW_TEXT},{OLD_TEXT}")


# The store, and another key


def test_no_file_of_the_store_holds_what_was_sealed(storage: SqliteStorage) -> None:
    seal = opened(storage)
    storage.records.put("a", "source", "x", {"sealed": seal.seal(TOKEN)}, over=0, at_s=1.0)
    storage.backup(storage.path.parent / "copy.db")

    files = [path for path in storage.path.parent.iterdir() if path.name != KEY_FILE]
    assert len(files) >= 3
    key = base64.b64decode((storage.path.parent / KEY_FILE).read_text())
    for secret in (TOKEN.encode(), key, base64.b64encode(key), base64.b64encode(TOKEN.encode())[:-4]):
        assert not any(secret in path.read_bytes() for path in files)


def test_after_everything_was_sealed_anew_the_old_key_is_not_needed(storage: SqliteStorage) -> None:
    """Whatever tenant and kind of record, however deep in the document, and as often as it likes."""
    old = opened(storage, key=OLD_TEXT)
    for number in range(250):
        document = {"name": f"n{number}", "deep": [{"sealed": old.seal(f"s{number}")}, 7]}
        storage.records.put(f"t{number % 3}", "source", f"r{number}", document, over=0, at_s=1.0, expires_s=9.0)
    storage.records.put("t0", "toolset", "plain", {"name": "x"}, over=0, at_s=1.0)
    plain = storage.records.get("t0", "toolset", "plain", at_s=1.0)

    both = opened(storage, key=f"{NEW_TEXT},{OLD_TEXT}")
    assert reseal_all(storage, both) == Resealed(251, 0)
    assert reseal_all(storage, both) == Resealed(251, 0)

    new = opened(storage, key=NEW_TEXT)
    for number in range(250):
        record = storage.records.get(f"t{number % 3}", "source", f"r{number}", at_s=1.0)
        assert record is not None
        assert (record.document["name"], record.changed_s, record.expires_s) == (f"n{number}", 1.0, 9.0)
        [sealed, seven] = record.document["deep"]
        assert (new.open(sealed["sealed"]), seven) == (f"s{number}", 7)
    assert storage.records.get("t0", "toolset", "plain", at_s=1.0) == plain


def test_what_cannot_be_opened_any_more_is_counted_and_left(storage: SqliteStorage) -> None:
    lost, good = Seal([OLD]).seal("x"), Seal([NEW]).seal("y")
    storage.records.put("a", "source", "x", {"one": lost, "two": good}, over=0, at_s=1.0)

    assert reseal_all(storage, Seal([NEW])) == Resealed(1, 1)
    record = storage.records.get("a", "source", "x", at_s=1.0)
    assert record is not None
    assert record.document["one"] == lost


def test_a_service_whose_key_is_lost_starts_again_once_that_is_admitted(storage: SqliteStorage) -> None:
    opened(storage, key=OLD_TEXT)
    forget_lost_key(storage)

    assert opened(storage, key=NEW_TEXT)
    assert storage.records.count(THE_SERVICE, "seal", at_s=1.0) == 1


def test_what_a_service_writes_while_everything_is_sealed_anew_stays(storage: SqliteStorage) -> None:
    """The record is read, changed by a service that has both keys, and only then written."""
    both = Seal([NEW, OLD])
    storage.records.put("a", "source", "x", {"sealed": both.seal("first"), "n": 1}, over=0, at_s=1.0)
    put, others = storage.records.put, [{"sealed": both.seal("second"), "n": 2}]

    def late_put(*values: Any, **options: Any) -> Record:
        if others:
            put("a", "source", "x", others.pop(), over=None, at_s=2.0)
        return put(*values, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage.records, "put", late_put)
        assert reseal_all(storage, both) == Resealed(1, 0)

    record = storage.records.get("a", "source", "x", at_s=2.0)
    assert record is not None
    assert (record.document["n"], record.changed_s, Seal([NEW]).open(str(record.document["sealed"]))) == (
        2,
        2.0,
        "second",
    )


def test_what_is_deleted_while_everything_is_sealed_anew_stays_deleted(storage: SqliteStorage) -> None:
    storage.records.put("a", "source", "x", {"sealed": Seal([NEW]).seal("x")}, over=0, at_s=1.0)
    put = storage.records.put

    def late_put(*values: Any, **options: Any) -> Record:
        storage.records.delete("a", "source", "x")
        return put(*values, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage.records, "put", late_put)
        assert reseal_all(storage, Seal([NEW])) == Resealed(0, 0)
    assert storage.records.count("a", "source", at_s=1.0) == 0


def test_the_seal_of_a_folder_makes_its_key_once_and_takes_the_one_that_is_given(tmp_path, monkeypatch):
    sealed = seal_of_folder({}, tmp_path).seal("text")
    assert seal_of_folder({}, tmp_path).open(sealed) == "text"
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    given = {"TOOLSEARCH_SECRET_KEY": base64.b64encode(b"g" * 32).decode()}
    with pytest.raises(SealError):
        seal_of_folder(given, tmp_path).open(sealed)


def test_of_two_processes_that_make_a_key_at_once_both_use_the_one_that_was_first(tmp_path, monkeypatch):
    first = base64.b64encode(b"f" * 32)

    def slow_key() -> bytes:
        (tmp_path / KEY_FILE).write_bytes(first)  # the other process is faster
        return b"s" * 32

    monkeypatch.setattr("toolsearch.storage.seal.new_key", slow_key)
    sealed = seal_of_folder({}, tmp_path).seal("text")

    assert (tmp_path / KEY_FILE).read_bytes() == first
    assert Seal([b"f" * 32]).open(sealed) == "text"
