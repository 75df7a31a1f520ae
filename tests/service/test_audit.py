"""Writes are recorded before they are acknowledged."""

from pathlib import Path

import pytest

from tests.kit.service import LISTING, ServiceKit, codes, serving
from toolsearch.errors import Kept, StorageError


def _recorded(kit: ServiceKit, tenant: str) -> list[tuple[str, str, str]]:
    records = kit.service.storage.audit.records(limit=10, tenant=tenant)
    return [(each.action, each.subject, each.outcome) for each in records]


async def test_writes_are_recorded_with_their_outcome_and_without_contents(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        async with kit.client(kit.key("acme")) as client, kit.client(kit.key("acme", "search")) as searcher:
            await client.post("/v1/catalogs", json={"name": "default"})
            await client.post("/v1/catalogs", json={"name": "default"})
            await client.post("/v1/catalogs/default/tools", json=LISTING)
            await client.post("/v1/search", json={"queries": ["a private question"]})
            await searcher.post("/v1/catalogs", json={"name": "mine"})
        recorded = _recorded(kit, "acme")

        assert recorded == [
            ("POST /catalogs", "", "done"),
            ("POST /catalogs", "", "refused: 409"),
            ("POST /catalogs/{catalog}/tools", "default", "done"),
            ("POST /catalogs", "", "refused: 403"),
        ]
        assert _recorded(kit, "default") == []


async def test_an_administrator_is_told_whether_a_record_of_its_tenant_was_changed(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit, kit.client(kit.key("acme")) as client:
        answer = await client.post("/v1/catalogs", json={"name": "default"})
        [entry] = (await client.get("/v1/audit")).json()["items"]
        sound = (await client.get("/v1/audit/chain")).json()
        with kit.service.storage.transaction() as database:
            database.execute("UPDATE audit SET outcome = 'other' WHERE tenant = 'acme'")
        broken = (await client.get("/v1/audit/chain")).json()
        others = (await kit.client(kit.operator).get("/v1/audit/chain")).json()
        searcher = await kit.client(kit.key("acme", "search")).get("/v1/audit/chain")

    assert sound == {"records": 1, "head": entry["digest"], "fault": ""}
    assert entry["request_id"] == answer.headers["x-request-id"]
    assert (broken["records"], "was changed" in broken["fault"], others["fault"]) == (0, True, "")
    assert searcher.status_code == 403


async def test_a_write_that_cannot_be_recorded_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise StorageError("the disk is full", Kept.AUDIT)

    async with serving(tmp_path) as kit, kit.client(kit.operator) as client:
        monkeypatch.setattr(kit.service.storage.audit, "append", fails)
        answer = await client.post("/v1/catalogs", json={"name": "default"})

    assert codes([answer]) == [(500, "audit_store_error")]
