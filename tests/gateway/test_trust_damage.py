"""Approvals that cannot be read: nothing is admitted until they can be."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.kit.poisoned_tools import tool
from tests.kit.trust import OTHER, PLAIN, config, judge, listed, why
from toolsearch.access.reach import Reach
from toolsearch.catalog.catalog import Catalog
from toolsearch.errors import Kept, StorageError
from toolsearch.gateway.approvals.waiting import gate_that_only_looks
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.trust.gate import PinStore, make_gate
from toolsearch.gateway.trust.verdicts import ReviewReason
from toolsearch.storage.sqlite.schema import _TABLES
from toolsearch.upstreams.interface import Listing


def test_pins_that_were_emptied_are_no_first_sight(tmp_path):
    judge(make_gate(config(tmp_path)), PLAIN)
    (tmp_path / "trust.db").write_bytes(b"")

    with pytest.raises(StorageError, match="is empty; restore it, or remove it to approve everything anew"):
        make_gate(config(tmp_path))


def test_a_definition_that_is_damaged_in_the_pins_is_an_error_and_no_first_sight(tmp_path, caplog):
    judge(make_gate(config(tmp_path)), PLAIN)
    with closing(sqlite3.connect(tmp_path / "trust.db")) as pins:
        pins.execute("UPDATE pins SET entry = '{'")
        pins.commit()

    assert why(judge(make_gate(config(tmp_path)), OTHER)) == [ReviewReason.UNREADABLE]
    assert re.search(r"held: the definition of 'add' that was kept of sums@\w+ is damaged", caplog.text)
    with pytest.raises(StorageError, match=r"the definition of 'add' that was kept of sums@\w+ is damaged"):
        PinStore.of(config(tmp_path)).entry("sums", "add", is_approved=True)


def test_what_was_held_since_nothing_could_be_read_is_judged_again_once_it_can(tmp_path, monkeypatch):
    """Whoever follows the version judges again when it is another one than the last time."""
    gate = make_gate(config(tmp_path))
    judge(gate, PLAIN)
    known = gate.version()

    def away(*_, **__):
        raise StorageError("nobody answers", Kept.PINS, retry_after_s=2)

    with monkeypatch.context() as store:
        store.setattr(PinStore, "version", away)
        store.setattr(PinStore, "approved", away)
        unreadable = gate.version()
        assert why(judge(gate, PLAIN)) == [ReviewReason.UNREADABLE]
        assert gate.version() == unreadable != known

    assert gate.version() not in (unreadable, known)
    assert why(judge(gate, PLAIN)) == []
    assert gate.version() == known


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def cut_to_a_page(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096])


def garbage(path: Path) -> None:
    path.write_bytes(b"\xaa" * path.stat().st_size)


def damaged_behind_the_header(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))


def a_page_in_the_place_of_another(path: Path) -> None:
    """As after a write that went astray: each page is sound, and some rows are gone without any error."""
    whole = path.read_bytes()
    pages = [whole[start : start + 4096] for start in range(0, len(whole), 4096)]
    leaves = [number for number, page in enumerate(pages) if page[0] == 10 and int.from_bytes(page[3:5], "big")]
    pages[leaves[-1]] = pages[leaves[-2]]
    path.write_bytes(b"".join(pages))


def altered(*statements: str) -> Callable[[Path], None]:
    def alter(path: Path) -> None:
        with closing(sqlite3.connect(path)) as pins:
            for statement in statements:
                pins.execute(statement)
            pins.commit()

    return alter


DAMAGES = {
    "truncated": truncated,
    "cut to a page": cut_to_a_page,
    "garbage": garbage,
    "damaged behind the header": damaged_behind_the_header,
    "a page in the place of another": a_page_in_the_place_of_another,
    "of another schema": altered("ALTER TABLE pins RENAME COLUMN server TO host"),
    "without its table": altered("DROP TABLE pins"),
    "without any table": altered(*(f"DROP TABLE {name}" for name in sorted(_TABLES)), "PRAGMA user_version = 0"),
}


def verdict_of_a_new_start(folder: Path, *entries: dict[str, Any]) -> Any:
    """None if the gate cannot even be made, so that no gateway starts."""
    try:
        gate = make_gate(config(folder))
    except StorageError:
        return None
    return judge(gate, *entries)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_after_a_start_on_pins_that_cannot_be_read_nothing_is_admitted(tmp_path, damage):
    """Neither what was approved nor what is new: what has lost its pin would look new."""
    gate = make_gate(config(tmp_path))
    judge(gate, *(tool("Adds " + "much " * 50, name=f"t{n}") for n in range(100)))
    gate.store.close()
    damage(tmp_path / "trust.db")

    verdict = verdict_of_a_new_start(tmp_path, OTHER, tool("Multiplies.", name="mul"))
    assert verdict is None or (verdict.admitted, why(verdict)) == ((), [ReviewReason.UNREADABLE] * 2)
    with pytest.raises(StorageError):
        PinStore.of(config(tmp_path)).approved("sums")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_command_that_only_looks_takes_nothing_for_new_either(tmp_path, damage):
    gate = make_gate(config(tmp_path))
    judge(gate, *(tool("Adds " + "much " * 50, name=f"t{n}") for n in range(100)))
    gate.store.close()
    damage(tmp_path / "trust.db")

    with suppress(StorageError), gate_that_only_looks(config(tmp_path)) as looking:
        assert why(judge(looking, OTHER)) == [ReviewReason.UNREADABLE]


@pytest.mark.parametrize("damage", [damaged_behind_the_header, altered("DROP TABLE pins")], ids=["page", "table"])
async def test_pins_that_are_damaged_under_a_running_gateway_hold_all_that_was_admitted(tmp_path, damage, caplog):
    gate, catalog = make_gate(config(tmp_path)), Catalog()
    registry = Registry(catalog, gate, Reach())
    await registry.publish(Listing("sums", (listed(PLAIN), listed(tool("Multiplies.", name="mul")))))
    before = gate.version()
    with closing(sqlite3.connect(tmp_path / "trust.db")) as other:  # so that nothing is read from memory
        other.execute("PRAGMA user_version = 2")
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(tmp_path / "trust.db")

    await registry.review("sums")
    assert gate.version() != before
    assert (list(catalog.snapshot().tools), registry.find_entry("sums__add")) == ([], None)
    assert [held.why for held in registry.servers["sums"].held] == [ReviewReason.UNREADABLE] * 2
    assert "everything of sums is held: " in caplog.text


async def test_once_the_pins_can_be_read_again_what_was_approved_is_back(tmp_path):
    gate = make_gate(config(tmp_path))
    judge(gate, PLAIN)
    before = gate.version()
    altered("ALTER TABLE pins RENAME TO lost")(tmp_path / "trust.db")
    assert why(judge(gate, PLAIN)) == [ReviewReason.UNREADABLE]
    altered("ALTER TABLE lost RENAME TO pins")(tmp_path / "trust.db")

    assert gate.version() != before  # until they have been judged again
    assert judge(gate, PLAIN).held == ()
    assert gate.version() == before
    assert why(judge(gate, OTHER)) == [ReviewReason.CHANGED]


def test_what_cannot_be_pinned_is_not_admitted(tmp_path):
    """It would be seen for the first time again and again, whatever it became."""
    gate = make_gate(config(tmp_path))
    altered("CREATE TRIGGER full BEFORE INSERT ON pins BEGIN SELECT RAISE(FAIL, 'disk full'); END")(
        tmp_path / "trust.db"
    )

    assert why(judge(gate, PLAIN)) == [ReviewReason.UNREADABLE]


@pytest.mark.parametrize("table", ["audit", "counters", "pins"])
def test_a_gateway_notices_in_time_that_the_pins_cannot_be_read(tmp_path, table):
    gate = make_gate(config(tmp_path))
    judge(gate, PLAIN)
    before = gate.version()
    altered(f"DROP TABLE {table}")(tmp_path / "trust.db")

    assert gate.version() != before


def test_a_state_folder_that_cannot_be_made_is_an_error_of_the_pins(tmp_path):
    (tmp_path / "state").write_text("a file")

    with pytest.raises(StorageError, match="cannot use the approved tools in"):
        make_gate(config(tmp_path / "state" / "folder"))
