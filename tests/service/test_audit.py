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


async def test_a_write_that_cannot_be_recorded_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise StorageError("the disk is full", Kept.AUDIT)

    async with serving(tmp_path) as kit, kit.client(kit.operator) as client:
        monkeypatch.setattr(kit.service.storage.audit, "append", fails)
        answer = await client.post("/v1/catalogs", json={"name": "default"})

    assert codes([answer]) == [(500, "audit_store_error")]
