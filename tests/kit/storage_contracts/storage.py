"""What all ports of one database owe together, and copies of it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.storage_contracts.contents import tool
from tests.kit.storage_contracts.figures import DAY_S, cell
from tests.kit.storage_contracts.keys import key
from tests.kit.storage_contracts.misses import miss
from tests.kit.storage_contracts.pins import seen
from tests.kit.storage_contracts.receipts import receipt
from toolsearch.errors import ConflictError, StorageError
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.storage import Storage
from toolsearch.storage.usage import UsageCell


def fill(storage: Storage, tenant: str, name: str = "") -> None:
    """Write something of the tenant into each port, all under *name* if that is given."""
    storage.records.put(tenant, "toolset", name or "x", {}, over=0, at_s=1.0)
    storage.keys.add(key(name or f"key of {tenant}", tenant))
    storage.contents.change(tenant, "main", put=[tool(name or "x")])
    storage.receipts.append(tenant, [receipt(name or "r1")])
    storage.figures.add(tenant, {cell(1, key=name or "k1"): 1.0})
    miss(storage.misses, name or "x", 1.0, tenant=tenant)
    storage.audit.append(AuditRecord(1.0, "ann", "create", name or "x", "done", tenant))
    storage.usage.add(tenant, {UsageCell(name or "mail", "x"): 1.0}, at_s=1.0, half_life_s=1.0)
    storage.sessions(tenant).save(name or "s", "text", version=0)
    storage.pins(tenant).keep(approve=[seen(name or "a", "p1")], hold=[seen(name or "b", "p2")])


def contents(storage: Storage, tenant: str) -> list[object]:
    """Everything that can be read of the tenant but for the audit: empty things for one who has nothing."""
    return [
        storage.records.page(tenant, "toolset", limit=9, at_s=1.0),
        storage.keys.page(tenant, limit=9),
        storage.contents.fingerprints(tenant, "main"),
        storage.contents.revision(tenant, "main"),
        storage.receipts.page(tenant, limit=9),
        storage.figures.sums(tenant, by="hour", since_s=0, until_s=DAY_S),
        storage.misses.page(tenant, None, limit=9),
        storage.usage.load(tenant),
        storage.sessions(tenant).ids(),
        storage.pins(tenant).approved("sums@1"),
        storage.pins(tenant).waiting("sums@1"),
    ]


class StorageContract:
    def make(self, folder: Path) -> Storage:
        raise NotImplementedError

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return self.make(tmp_path)

    def test_versions_of_many_sessions_are_told_at_once(self, storage: Storage) -> None:
        kept = storage.sessions("a")
        saved = {f"s{number}": kept.save(f"s{number}", "1", version=0) for number in range(3)}
        saved["s1"] = kept.save("s1", "2", version=saved["s1"])
        storage.sessions("b").save("s9", "1", version=0)

        assert kept.versions(["s0", "s1", "s9"]) == {"s0": saved["s0"], "s1": saved["s1"]}
        assert kept.versions([f"s{number}" for number in range(1_200)]) == saved
        assert kept.versions([]) == {}

    def test_sessions_are_of_one_tenant(self, storage: Storage) -> None:
        ours, theirs = storage.sessions("a"), storage.sessions("b")
        version = ours.save("s", "ours", version=0)

        assert (theirs.load("s"), theirs.ids(), theirs.delete("s")) == (None, [], False)
        with pytest.raises(ConflictError):
            theirs.save("s", "theirs", version=version)
        theirs.save("s", "theirs", version=0)
        loaded = storage.sessions("a").load("s")
        assert loaded is not None
        assert loaded.text == "ours"

    def test_approvals_are_of_one_tenant_and_so_is_their_version(self, storage: Storage) -> None:
        ours, theirs = storage.pins("a"), storage.pins("b")
        ours.keep(hold=[seen("t", "p1")])
        before = theirs.version()

        assert (theirs.waiting("sums@1"), theirs.entry("sums@1", "t", is_approved=False)) == ({}, None)
        assert not theirs.approve("sums@1", "t", "p1", by="bob", at_s=1.0)
        assert not theirs.revoke("sums@1", "t", by="bob", at_s=1.0)
        theirs.keep(forget=[seen("t", "p1")])
        changed = theirs.version()
        assert changed > before
        assert ours.approve("sums@1", "t", "p1", by="ann", at_s=2.0)
        assert theirs.version() == changed
        assert storage.pins("a").approved("sums@1")["t"].by == "ann"
        assert [each.who for each in storage.audit.records(limit=9, tenant="b")] == ["bob", "bob"]
        assert [each.who for each in storage.audit.records(limit=9, tenant="a")] == ["ann"]

    def test_the_version_of_approvals_changes_even_after_the_audit_was_pruned(self, storage: Storage) -> None:
        pins = storage.pins("a")
        versions = []
        for _ in range(2):
            pins.approve("sums@1", "t", "p1", by="ann", at_s=1.0)
            versions.append(pins.version())
            storage.audit.prune(before_s=2.0, limit=9, at_s=2.0)

        assert len({*versions, pins.version()}) == 2

    def test_everything_of_a_tenant_goes_with_it_but_the_audit_and_nothing_of_others(self, storage: Storage) -> None:
        nothing = contents(storage, "a")
        for tenant in ("a", "b"):
            fill(storage, tenant)
        theirs = contents(storage, "b")
        assert all(one != other for one, other in zip(contents(storage, "a"), nothing, strict=True))

        storage.drop_tenant("a")

        assert contents(storage, "a") == nothing
        assert contents(storage, "b") == theirs
        assert len(storage.audit.records(limit=9, tenant="a")) == 1

    def test_the_service_itself_cannot_be_deleted_like_a_tenant(self, storage: Storage) -> None:
        storage.records.put("", "tenant", "a", {}, over=0, at_s=1.0)

        with pytest.raises(ValueError, match="name a tenant"):
            storage.drop_tenant("")
        assert storage.records.count("", "tenant", at_s=1.0) == 1

    def test_a_tenant_that_comes_anew_gets_no_version_that_was_known_before(self, storage: Storage) -> None:
        fill(storage, "a")
        version = storage.records.page("a", "toolset", limit=1, at_s=1.0)[0].version
        revision = storage.contents.revision("a", "main")
        storage.drop_tenant("a")
        fill(storage, "a")

        assert storage.records.page("a", "toolset", limit=1, at_s=1.0)[0].version > version
        assert storage.contents.revision("a", "main") > revision

    def test_nobody_else_writes_a_record_that_is_held_until_the_transaction_ends(self, storage: Storage) -> None:
        first = storage.records.put("a", "job", "x", {"n": 0}, over=0, at_s=1.0)
        with ThreadPoolExecutor(1) as threads:
            with storage.transaction():
                assert storage.records.hold("a", "job", "x", at_s=2.0) == first
                other = threads.submit(storage.records.put, "a", "job", "x", {}, over=first.version, at_s=2.0)
                with pytest.raises(TimeoutError):
                    other.result(timeout=0.2)
                storage.records.put("a", "job", "x", {"n": 1}, over=first.version, at_s=2.0)
            with pytest.raises(ConflictError):
                other.result()
        assert storage.records.hold("a", "job", "y", at_s=2.0) is None

    def test_what_several_ports_write_in_a_transaction_is_written_all_or_nothing(self, storage: Storage) -> None:
        def write_both(over: int) -> None:
            with storage.transaction():
                storage.contents.change("a", "main", put=[tool("x")])
                assert storage.contents.count("a") == 1
                storage.records.put("a", "catalog", "main", {}, over=over, at_s=1.0)

        with pytest.raises(ConflictError):
            write_both(over=7)
        assert storage.contents.count("a") == 0

        write_both(over=0)
        assert (storage.contents.count("a"), storage.records.count("a", "catalog", at_s=1.0)) == (1, 1)

    def test_a_part_of_a_transaction_that_failed_is_undone_by_itself(self, storage: Storage) -> None:
        def fail() -> None:
            with storage.transaction():
                storage.contents.change("a", "main", put=[tool("y")])
                storage.keys.add(key("k1"))

        storage.keys.add(key("k1"))
        with storage.transaction():
            storage.contents.change("a", "main", put=[tool("x")])
            with pytest.raises(StorageError):
                fail()

        assert list(storage.contents.fingerprints("a", "main")) == ["x"]

    def test_nobody_sees_what_is_being_written_and_nobody_waits_to_read(self, storage: Storage) -> None:
        with ThreadPoolExecutor(1) as elsewhere, storage.transaction():
            fill(storage, "a")
            seen_there = elsewhere.submit(contents, storage, "a").result(timeout=20)

            assert seen_there == contents(storage, "nobody")
        assert len(storage.receipts.page("a", limit=9)) == 1

    def test_within_a_snapshot_all_ports_are_of_one_moment(self, storage: Storage) -> None:
        fill(storage, "a")
        with storage.snapshot():
            before = contents(storage, "a")
            in_another_thread(lambda: storage.drop_tenant("a"))
            assert contents(storage, "a") == before
            with pytest.raises(RuntimeError, match="within a snapshot"):
                storage.contents.drop("a", "main")
        assert contents(storage, "a") != before

    def test_names_are_ordered_by_their_characters_whatever_the_language(self, storage: Storage) -> None:
        """As Python orders them, not as people do, so that pages of each database go on where another's ended."""
        names = ["Z", "_", "a", "a b", "a_b", "aa", "z", "\u00e9", "\U0001f600"]
        for name in reversed(names):
            fill(storage, "a", name)

        assert [each.id for each in storage.records.page("a", "toolset", limit=99, at_s=1.0)] == names
        assert [each.id for each in storage.records.page("a", "toolset", after="_", limit=2, at_s=1.0)] == ["a", "a b"]
        assert [each.id for each in storage.keys.page("a", limit=99)] == names
        assert [each.name for each in storage.contents.page("a", "main", limit=99)] == names
        assert list(storage.contents.fingerprints("a", "main")) == names
        assert [each.id for each in storage.receipts.page("a", limit=99)] == names[::-1]
        assert [each.group for each in storage.figures.sums("a", by="key", since_s=0, until_s=DAY_S)] == names
        assert sorted(set(names)) == names == storage.sessions("a").ids()
        assert [each.cell.term for each in storage.usage.load("a")] == names
        assert list(storage.pins("a").approved("sums@1")) == names

    def test_a_text_that_no_database_takes_is_refused_as_the_callers_fault(self, storage: Storage) -> None:
        """Where the caller is to find it again under the same name."""
        refused: list[Callable[[str], object]] = [
            lambda text: storage.records.put("a", "toolset", text, {}, over=0, at_s=1.0),
            lambda text: storage.records.get("a", "toolset", text, at_s=1.0),
            lambda text: storage.keys.add(replace(key("k1"), name=text)),
            lambda text: storage.contents.change("a", "main", put=[tool("good"), tool(text)]),
            lambda text: storage.sessions("a").save(text, "", version=0),
            lambda text: storage.pins("a").keep(approve=[seen(text, "p1")]),
        ]
        for text in ("NUL \0", "half \ud800"):
            for refuse in refused:
                with pytest.raises(StorageError, match=r"^cannot be kept among the .*; leave it out") as error:
                    refuse(text)
                assert (error.value.status, error.value.code) == (422, "bad_value")
        assert contents(storage, "a") == contents(storage, "nobody")

    def test_a_number_that_no_database_takes_is_refused_as_the_callers_fault(self, storage: Storage) -> None:
        version = storage.sessions("a").save("s", "", version=0)
        refused: list[Callable[[], object]] = [
            lambda: storage.sessions("a").save("s", "", version=version + (1 << 64)),
            lambda: storage.audit.records(limit=9, before=1 << 63),
            lambda: storage.usage.add("a", {UsageCell("t", "t"): float("nan")}, at_s=1.0, half_life_s=1.0),
        ]
        for refuse in refused:
            with pytest.raises(StorageError, match="a number") as error:
                refuse()
            assert error.value.status == 422

    def test_what_a_document_says_is_kept_to_the_letter(self, storage: Storage) -> None:
        text = "NUL \0, half \ud800, \U0001f600" + "x" * 3_000_000
        storage.records.put("a", "toolset", "x", {"text": text}, over=0, at_s=1.0)
        storage.contents.change("a", "main", put=[replace(tool("x"), document={"text": text})])

        record = storage.records.get("a", "toolset", "x", at_s=1.0)
        assert record is not None
        assert record.document == {"text": text}
        assert storage.contents.get("a", "main", ["x"])[0].document == {"text": text}

    def test_what_is_only_read_by_people_is_kept_but_for_what_no_database_takes(self, storage: Storage) -> None:
        """A model makes up names of tools, and users ask what they like: a batch is not lost by that."""
        storage.receipts.append("a", [receipt("r1", tool="NUL \0"), receipt("r2", tool="half \ud800!")])
        miss(storage.misses, "half \ud800 NUL \0", 1.0)
        storage.audit.append(AuditRecord(1.0, "ann", "create", "\0", "done", "a"))

        assert [each.tool for each in storage.receipts.page("a", limit=9)] == ["half \ufffd!", "NUL \ufffd"]
        assert [each.query for each in storage.misses.page("a", None, limit=9)] == ["half \ufffd NUL \ufffd"]
        assert storage.misses.forget("a", "catalog/main", "half \ud800 NUL \0")
        assert [each.subject for each in storage.audit.records(limit=9, tenant="a")] == ["\ufffd"]

    def test_a_failure_that_a_transaction_goes_on_after_costs_nothing_but_itself(self, storage: Storage) -> None:
        """Whichever port failed, and however deep."""
        version = storage.sessions("a").save("s", "old", version=0)
        storage.keys.add(key("k1"))
        with storage.transaction():
            storage.records.put("a", "toolset", "x", {}, over=0, at_s=1.0)
            with pytest.raises(ConflictError):
                storage.records.put("a", "toolset", "x", {}, over=0, at_s=1.0)
            with pytest.raises(ConflictError):
                storage.sessions("a").save("s", "new", version=version + 1)
            with storage.transaction():
                with pytest.raises(StorageError), storage.transaction():
                    storage.keys.add(key("k1"))
                storage.records.put("a", "toolset", "y", {}, over=0, at_s=1.0)
            storage.sessions("a").save("s", "newer", version=version)

        assert [each.id for each in storage.records.page("a", "toolset", limit=9, at_s=1.0)] == ["x", "y"]
        loaded = storage.sessions("a").load("s")
        assert loaded is not None
        assert loaded.text == "newer"

    def test_nothing_to_write_writes_nothing(self, storage: Storage) -> None:
        storage.receipts.append("a", [])
        storage.figures.add("a", {})
        storage.usage.add("a", {}, at_s=1.0, half_life_s=1.0)
        storage.usage.drop("a", [])

        assert contents(storage, "a") == contents(storage, "nobody")

    def test_threads_that_read_and_write_within_their_own_blocks_never_wait_for_each_other_for_ever(
        self, storage: Storage
    ) -> None:
        """Many more than there are connections, each within several blocks at once."""

        def work(number: int) -> None:
            with storage.transaction(), storage.transaction():
                storage.records.put("a", "toolset", f"t{number:02}", {}, over=0, at_s=1.0)
                storage.contents.change("a", "main", put=[tool(f"t{number:02}")])
                assert storage.contents.count("a") > 0
            with storage.snapshot(), storage.snapshot():
                storage.records.count("a", "toolset", at_s=1.0)

        with ThreadPoolExecutor(24) as threads:
            list(threads.map(work, range(48)))

        assert storage.contents.count("a") == storage.records.count("a", "toolset", at_s=1.0) == 48


class BackupContract:
    def make(self, folder: Path) -> Storage:
        raise NotImplementedError

    def open_backup(self, path: Path) -> Storage:
        raise NotImplementedError

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return self.make(tmp_path)

    def test_a_backup_is_of_one_moment_while_others_write(self, storage: Storage, tmp_path: Path) -> None:
        """Each change writes one tool into each of two catalogs, so that a copy between them would tell."""
        stop = threading.Event()

        def write() -> int:
            done = 0
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
                    storage.backup(tmp_path / f"copy{number}.db")
            finally:
                stop.set()
            assert writing.result() > 0

        for number in range(5):
            with closing(self.open_backup(tmp_path / f"copy{number}.db")) as copy:
                assert copy.contents.count("a", "one") == copy.contents.count("a", "two")

    def test_a_backup_never_overwrites_a_file(self, storage: Storage, tmp_path: Path) -> None:
        (tmp_path / "copy.db").write_text("precious")

        with pytest.raises(StorageError, match=r"copy\.db exists"):
            storage.backup(tmp_path / "copy.db")
        assert (tmp_path / "copy.db").read_text() == "precious"


def in_another_thread(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(work).result(timeout=20)
