"""Writes of several rows that are cut off have written none of them."""

from pathlib import Path

import pytest

from tests.kit.service import serving
from toolsearch.errors import StorageError
from toolsearch.storage.records import RecordStore

TOOLS = ["read_log", "send_mail"]


@pytest.mark.parametrize("kind", ["catalog", "toolset"])
async def test_what_could_not_be_deleted_whole_is_still_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    async with serving(tmp_path) as kit:
        token = kit.key("acme")
        await kit.catalog(token)
        client = kit.client(token)
        body = {"name": "team", "tools": [{"catalog": "default", "tool": name} for name in TOOLS]}
        (await client.post("/v1/toolsets", json=body)).raise_for_status()
        (await client.patch("/v1/toolsets/team", json={"description": "Of the team."})).raise_for_status()
        working = RecordStore.delete

        def cut_off(records: RecordStore, tenant: str, of_kind: str, record_id: str, **more: int) -> bool:
            if of_kind == kind:
                raise StorageError("the disk is gone")
            return working(records, tenant, of_kind, record_id, **more)

        with monkeypatch.context() as patched:
            patched.setattr(RecordStore, "delete", cut_off)
            path = "/v1/toolsets/team" if kind == "toolset" else "/v1/catalogs/default"
            assert (await client.delete(path)).status_code == 500

        versions = (await client.get("/v1/toolsets/team/versions")).json()["items"]
        assert (kit.service.storage.contents.count("acme"), len(versions)) == (2, 2)
