"""Services that start at once over one store: one makes the first tenant, its key and the secret key."""

import base64
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from toolsearch.errors import SealError, StorageError
from toolsearch.service.keys.keys import TENANT
from toolsearch.service.sealing import open_seal
from toolsearch.service.service import Service
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.records import THE_SERVICE, Record, RecordStore
from toolsearch.storage.seal import KEY_FILE
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.tools.json_types import JsonObject

GIVEN = {"TOOLSEARCH_SECRET_KEY": base64.b64encode(b"g" * 32).decode()}


class Interrupted:
    """Records of a service that is slow: another one does *meanwhile* just before it writes for the first time."""

    def __init__(self, records: RecordStore, meanwhile: Callable[[], object]) -> None:
        self._records = records
        self._meanwhile: Callable[[], object] | None = meanwhile

    def put(self, tenant: str, kind: str, record_id: str, document: JsonObject, **options: Any) -> Record:
        if self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            meanwhile()
        return self._records.put(tenant, kind, record_id, document, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[SqliteStorage]:
    with closing(SqliteStorage(tmp_path / "kept.db")) as storage:
        yield storage


def started(storage: SqliteStorage) -> Service:
    return Service(ServiceSettings(), storage, clock=lambda: 1.0)


# The first tenant and its key


def test_only_the_first_of_two_starts_makes_a_key(storage: SqliteStorage) -> None:
    keys = [started(storage).tenants.first_key() for _ in range(2)]

    assert [key is None for key in keys] == [False, True]
    assert len(storage.keys.page("default", limit=9)) == 1


def test_a_start_that_another_one_overtakes_makes_no_key(
    storage: SqliteStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one is there just after it was looked whether there is a key."""
    fast, slow = started(storage).tenants, started(storage).tenants
    made: list[str | None] = []
    is_empty = storage.keys.is_empty

    def look() -> bool:
        monkeypatch.setattr(storage.keys, "is_empty", is_empty)
        was_empty = is_empty()
        made.append(fast.first_key())
        return was_empty

    monkeypatch.setattr(storage.keys, "is_empty", look)

    assert slow.first_key() is None
    assert made != [None]
    assert len(storage.keys.page("default", limit=9)) == 1
    assert storage.records.count(THE_SERVICE, TENANT, at_s=1.0) == 1


def test_no_tenant_is_left_of_a_start_that_could_not_make_its_key(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenants = started(storage).tenants
    monkeypatch.setattr(storage.keys, "add", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tenants.first_key()
    assert storage.records.count(THE_SERVICE, TENANT, at_s=1.0) == 0

    monkeypatch.undo()
    assert tenants.first_key() is not None


def test_an_operator_who_deleted_all_keys_gets_a_first_one_again(storage: SqliteStorage) -> None:
    tenants = started(storage).tenants
    tenants.first_key()
    storage.drop_tenant("default")

    assert tenants.first_key() is not None


# The secret key


def test_of_two_first_starts_with_keys_of_their_own_one_is_refused(
    storage: SqliteStorage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And the key that it has made for nothing is gone, so that the other's can be put in its place."""
    fast, slow = tmp_path / "fast", tmp_path / "slow"
    records = Interrupted(storage.records, lambda: open_seal({}, fast, storage.records, clock=lambda: 1.0))
    with caplog.at_level(logging.WARNING), pytest.raises(SealError, match="need the same key"):
        open_seal({}, slow, records, clock=lambda: 1.0)

    assert not (slow / KEY_FILE).exists()
    assert str(fast) in caplog.text
    assert str(slow) not in caplog.text
    (slow / KEY_FILE).write_bytes((fast / KEY_FILE).read_bytes())
    assert open_seal({}, slow, storage.records, clock=lambda: 1.0)


def test_two_first_starts_with_the_same_key_both_start(storage: SqliteStorage, tmp_path: Path) -> None:
    seals = []
    records = Interrupted(
        storage.records, lambda: seals.append(open_seal(GIVEN, tmp_path, storage.records, clock=lambda: 1.0))
    )
    seals.append(open_seal(GIVEN, tmp_path, records, clock=lambda: 1.0))

    assert seals[0].open(seals[1].seal("x")) == "x"
    assert open_seal(GIVEN, tmp_path, storage.records, clock=lambda: 1.0).open(seals[1].seal("x")) == "x"


def test_the_key_of_another_store_makes_no_new_start_unless_it_was_given(
    storage: SqliteStorage, tmp_path: Path
) -> None:
    """All rows are gone, while the tables are there."""
    (tmp_path / KEY_FILE).write_text(GIVEN["TOOLSEARCH_SECRET_KEY"])

    with pytest.raises(StorageError, match="the store is empty"):
        open_seal({}, tmp_path, storage.records, clock=lambda: 1.0)
    assert not storage.records.scan(limit=1)
    assert open_seal(GIVEN, tmp_path, storage.records, clock=lambda: 1.0)


def test_a_start_without_the_key_of_the_store_makes_none(storage: SqliteStorage, tmp_path: Path) -> None:
    open_seal(GIVEN, tmp_path, storage.records, clock=lambda: 1.0)

    with pytest.raises(SealError, match=r"secret\.key.*TOOLSEARCH_SECRET_KEY"):
        open_seal({}, tmp_path / "another", storage.records, clock=lambda: 1.0)
    assert not (tmp_path / "another").exists()
