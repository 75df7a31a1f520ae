"""PATCH: what is left out stays, and null is taken where the OpenAPI document says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.service import ServiceKit, codes, serving

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text(encoding="utf-8"))
BODIES: dict[str, dict[str, Any]] = {
    path: DOCUMENT["components"]["schemas"][
        methods["patch"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    ]
    for path, methods in DOCUMENT["paths"].items()
    if "patch" in methods
}
FIELDS = [(path, name) for path, body in BODIES.items() for name in body["properties"]]
NULLABLE = ("/v1/catalogs/{catalog}/tools/{tool}", "output_schema")


def takes_null(path: str, field: str) -> bool:
    """Whether the document says so."""
    schema = BODIES[path]["properties"][field]
    return any(each.get("type") == "null" for each in schema.get("anyOf", [schema]))


async def filled(kit: ServiceKit) -> None:
    await kit.catalog(kit.operator, "office", [{"name": "send_mail", "outputSchema": {"type": "object"}}])
    async with kit.client(kit.operator) as client:
        (await client.post("/v1/toolsets", json={"name": "team", "description": "Ours."})).raise_for_status()


def address(path: str) -> str:
    return path.format(catalog="office", tool="send_mail", toolset="team")


def test_the_fields_of_every_patch_are_known_to_these_tests() -> None:
    assert set(BODIES) == {"/v1/catalogs/{catalog}", "/v1/catalogs/{catalog}/tools/{tool}", "/v1/toolsets/{toolset}"}
    assert [each for each in FIELDS if takes_null(*each)] == [NULLABLE]


@pytest.mark.parametrize(("path", "field"), FIELDS)
async def test_null_is_taken_where_the_document_says_so_and_refused_elsewhere(
    tmp_path: Path, path: str, field: str
) -> None:
    async with serving(tmp_path) as kit, kit.client(kit.operator) as client:
        await filled(kit)
        answer = await client.patch(address(path), json={field: None})
        if takes_null(path, field):
            assert answer.json()[field] is None
        else:
            assert codes([answer]) == [(422, "bad_request")]
            assert answer.json()["errors"][0]["field"] == f"body.{field}"


@pytest.mark.parametrize("path", list(BODIES))
async def test_what_is_left_out_of_a_patch_stays(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path) as kit, kit.client(kit.operator) as client:
        await filled(kit)
        before = (await client.get(address(path))).json()
        after = (await client.patch(address(path), json={})).json()
        kept = BODIES[path]["properties"].keys() & before.keys()
        assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
        after = (await client.patch(address(path), json={"description": "Changed."})).json()
        assert {name: after[name] for name in kept} == {
            **{name: before[name] for name in kept},
            "description": "Changed.",
        }
