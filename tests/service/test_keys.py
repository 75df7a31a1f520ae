"""API keys: made, exchanged, withdrawn; and none does more than its maker."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.service import ServiceKit, codes, serving


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as running:
        yield running


async def made(kit: ServiceKit, token: str, **body: Any) -> dict[str, Any]:
    answer = await kit.client(token).post("/v1/keys", json={"name": "an agent's", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def status(kit: ServiceKit, token: str) -> int:
    return (await kit.client(token).get("/v1/me")).status_code


async def test_a_key_is_shown_once_and_known_by_its_first_characters(kit: ServiceKit) -> None:
    admin = kit.client(kit.key("acme"))
    key = (await admin.post("/v1/keys", json={"name": "an agent's", "deny": ["class:destructive"]})).json()
    shown = await admin.get(f"/v1/keys/{key['id']}")
    listed = await admin.get("/v1/keys")

    assert key["key"].startswith("ts_")
    assert shown.json() == {name: value for name, value in key.items() if name != "key"}
    assert shown.json()["prefix"] == key["key"][:10]
    assert (shown.json()["scopes"], shown.json()["allow"]) == (["search", "call", "feedback"], ["*"])
    assert key["key"] not in shown.text + listed.text
    assert {each["id"] for each in listed.json()["items"]} >= {key["id"]}


async def test_whoever_asks_is_told_what_the_credential_allows(kit: ServiceKit) -> None:
    token = kit.key("acme", "search", allow=["git__*"], deny=["class:write"])
    me = (await kit.client(token).get("/v1/me")).json()

    assert me.pop("key_id").startswith("key_")
    assert me == {
        "tenant": "acme",
        "scopes": ["search"],
        "allow": ["git__*"],
        "deny": ["class:write"],
        "operator": False,
    }


async def test_keys_are_listed_in_pages(kit: ServiceKit) -> None:
    admin = kit.client(kit.key("acme"))
    for _ in range(2):
        kit.key("acme")
    first = (await admin.get("/v1/keys?limit=2")).json()
    second = (await admin.get("/v1/keys", params={"limit": 2, "after": first["next"]})).json()

    assert (len(first["items"]), len(second["items"]), second["next"]) == (2, 1, None)
    assert len({each["id"] for each in first["items"] + second["items"]}) == 3
    assert codes([await admin.get("/v1/keys?after=x")]) == [(400, "bad_cursor")]


async def test_a_revoked_key_is_refused_at_once(kit: ServiceKit) -> None:
    admin = kit.key("acme")
    key = await made(kit, admin)
    assert await status(kit, key["key"]) == 200  # so that it is remembered

    assert (await kit.client(admin).delete(f"/v1/keys/{key['id']}")).status_code == 204
    assert await status(kit, key["key"]) == 401


async def test_a_key_that_is_read_while_it_is_revoked_is_not_remembered(
    kit: ServiceKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = kit.key("acme")
    key = kit.service.storage.keys.page("acme", limit=1)[0]
    by_hash = kit.service.storage.keys.by_hash
    loop, is_read, go_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def slow(sha256: str) -> object:
        found = by_hash(sha256)
        loop.call_soon_threadsafe(is_read.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
        return found

    monkeypatch.setattr(kit.service.storage.keys, "by_hash", slow)
    reading = asyncio.create_task(kit.service.keys.of_token(token))
    await is_read.wait()
    await kit.service.keys.revoke("acme", key.id)
    go_on.set()
    await reading
    monkeypatch.setattr(kit.service.storage.keys, "by_hash", by_hash)

    assert await kit.service.keys.of_token(token) is None


async def test_a_key_expires_to_the_second(kit: ServiceKit) -> None:
    key = await made(kit, kit.key("acme"), expires_in_s=3)
    kit.clock.now_s += 2
    assert await status(kit, key["key"]) == 200
    kit.clock.now_s += 1
    assert await status(kit, key["key"]) == 401


async def test_a_key_that_another_process_revokes_is_refused_after_seconds(kit: ServiceKit) -> None:
    key = await made(kit, kit.key("acme"))
    assert await status(kit, key["key"]) == 200
    kit.service.storage.keys.revoke("acme", key["id"], at_s=kit.clock.now_s)
    kit.clock.now_s += 5
    assert await status(kit, key["key"]) == 401


async def test_a_use_is_noted_after_the_clock_was_set_back(kit: ServiceKit) -> None:
    admin = kit.key("acme")
    key = await made(kit, admin, scopes=["search"])
    path = f"/v1/keys/{key['id']}"
    used: list[str] = []
    for step_s in (0, -172_800):
        kit.clock.now_s += step_s
        await status(kit, key["key"])
        await kit.service.keys.aclose()
        used.append((await kit.client(admin).get(path)).json()["used_at"])

    assert [each[:10] for each in used] == ["2027-01-15", "2027-01-13"]


async def test_a_key_is_exchanged_and_the_old_one_is_good_for_a_while(kit: ServiceKit) -> None:
    admin = kit.key("acme")
    old = await made(kit, admin, scopes=["search"], allow=["git__*"], expires_in_s=1_000)
    new = (await kit.client(admin).post(f"/v1/keys/{old['id']}/rotate", json={"overlap_s": 60})).json()

    same = ("name", "scopes", "allow", "deny", "expires_at")
    assert [new[name] for name in same] == [old[name] for name in same]
    assert new["id"] != old["id"]
    kit.clock.now_s += 59
    assert [await status(kit, old["key"]), await status(kit, new["key"])] == [200, 200]
    kit.clock.now_s += 1
    assert [await status(kit, old["key"]), await status(kit, new["key"])] == [401, 200]


async def test_a_key_that_was_exchanged_can_still_be_revoked_at_once(kit: ServiceKit) -> None:
    admin = kit.key("acme")
    old = await made(kit, admin)
    await kit.client(admin).post(f"/v1/keys/{old['id']}/rotate", json={"overlap_s": 60})

    assert (await kit.client(admin).delete(f"/v1/keys/{old['id']}")).status_code == 204
    assert await status(kit, old["key"]) == 401


async def test_the_last_use_is_written_down_once_a_minute(kit: ServiceKit, monkeypatch: pytest.MonkeyPatch) -> None:
    token = kit.key("acme")
    noted: list[float] = []
    monkeypatch.setattr(kit.service.storage.keys, "note_use", lambda _, at_s: noted.append(at_s))
    start_s = kit.clock.now_s

    for seconds in (0, 1, 59, 60, 61):
        kit.clock.now_s = start_s + seconds
        await kit.service.keys.of_token(token)
    await kit.service.keys.aclose()

    assert [each - start_s for each in noted] == [0, 60]


# No more than oneself


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"allow": ["*"]}, "more_than_own"),
        ({"allow": ["git__read*"]}, "more_than_own"),  # not one of the own rules: nobody can say that it is less
        ({"allow": ["mail__send"]}, "more_than_own"),
        ({"allow": ["server:git"]}, "more_than_own"),
        ({"allow": ["["]}, "bad_setting"),
    ],
)
async def test_a_key_reaches_no_more_than_the_one_it_is_made_with(
    kit: ServiceKit, body: dict[str, Any], expected: str
) -> None:
    admin = kit.client(kit.key("acme", "admin", allow=["git__*", "tag:safe"], deny=["git__push"]))
    answer = await admin.post("/v1/keys", json={"name": "x", **body})

    assert answer.json()["code"] == expected


async def test_a_key_has_the_reach_of_its_maker_unless_it_is_given_less(kit: ServiceKit) -> None:
    admin = kit.key("acme", "admin", allow=["git__*", "tag:safe"], deny=["git__push"])

    same = await made(kit, admin)
    less = await made(kit, admin, allow=["tag:safe", "git__log"], deny=["git__log"])

    assert (same["allow"], same["deny"]) == (["git__*", "tag:safe"], ["git__push"])
    assert (less["allow"], less["deny"]) == (["tag:safe", "git__log"], ["git__log", "git__push"])


async def test_a_key_lasts_no_longer_than_the_one_it_is_made_with(kit: ServiceKit) -> None:
    admin = kit.key("acme", expires_s=kit.clock.now_s + 100)
    keys = [await made(kit, admin), await made(kit, admin, expires_in_s=1_000), await made(kit, admin, expires_in_s=9)]

    kit.clock.now_s += 9
    assert [await status(kit, each["key"]) for each in keys] == [200, 200, 401]
    kit.clock.now_s += 91
    assert [await status(kit, each["key"]) for each in keys] == [401, 401, 401]


async def test_only_administrators_make_keys_and_only_operators_make_operators(kit: ServiceKit) -> None:
    writer, admin = kit.client(kit.key("acme", "write-catalog")), kit.client(kit.key("acme"))
    operator_key = {"name": "x", "operator": True}
    answers = [
        await writer.post("/v1/keys", json={"name": "x"}),
        await writer.get("/v1/keys"),
        await admin.post("/v1/keys", json=operator_key),
        await admin.post("/v1/tenants/acme/keys", json=operator_key),
    ]

    assert codes(answers) == [
        (403, "not_permitted"),
        (403, "not_permitted"),
        (422, "bad_request"),
        (403, "not_permitted"),
    ]


async def test_a_key_that_may_do_more_is_not_exchanged_for_one_that_its_maker_may_read(kit: ServiceKit) -> None:
    kit.key("acme", is_operator=True)
    kit.key("acme", "search", allow=["mail__*"])
    kit.key("acme", "search", allow=["git__*"])
    kit.key("acme", "search", allow=["git__*"], deny=["git__push"])
    small = kit.client(
        kit.key("acme", "admin", allow=["git__*"], deny=["git__push"], expires_s=kit.clock.now_s + 1_000)
    )
    others = [key for key in kit.service.storage.keys.page("acme", limit=9) if key.expires_s is None]
    answers = [await small.post(f"/v1/keys/{key.id}/rotate", json={}) for key in others]

    assert len(others) == 4
    assert codes(answers) == [(403, "more_than_own")] * 4


async def test_an_administrator_cannot_revoke_an_operator(kit: ServiceKit) -> None:
    admin = kit.key("default")
    operator = next(key for key in kit.service.storage.keys.page("default", limit=9) if key.is_operator)

    answer = await kit.client(admin).delete(f"/v1/keys/{operator.id}")

    assert codes([answer]) == [(403, "more_than_own")]
    assert await status(kit, kit.operator) == 200


async def test_the_last_operator_cannot_revoke_itself_by_any_route(kit: ServiceKit) -> None:
    client = kit.client(kit.operator)
    own = (await client.get("/v1/me")).json()["key_id"]
    paths = (f"/v1/keys/{own}", f"/v1/tenants/default/keys/{own}")
    refused = [await client.delete(path) for path in paths]
    rotated = (await client.post(f"/v1/keys/{own}/rotate", json={})).json()
    again = await kit.client(rotated["key"]).delete(f"/v1/keys/{rotated['id']}")

    assert codes([*refused, again]) == [(409, "last_operator")] * 3
    assert [await status(kit, kit.operator), await status(kit, rotated["key"])] == [401, 200]


async def test_an_operator_whose_key_expires_can_exchange_it(kit: ServiceKit) -> None:
    """The old one ends before the time for which both are to be accepted."""
    end_s = kit.clock.now_s + 100
    key = kit.key("default", is_operator=True, expires_s=end_s)
    client = kit.client(key)
    own, first = [(await each.get("/v1/me")).json()["key_id"] for each in (client, kit.client(kit.operator))]
    assert (await client.delete(f"/v1/keys/{first}")).status_code == 204

    assert (await client.post(f"/v1/keys/{own}/rotate", json={"overlap_s": 200})).status_code == 201


async def test_one_of_two_operators_who_revoke_each_other_stays(kit: ServiceKit) -> None:
    other = kit.key("default", is_operator=True)
    clients = [kit.client(key) for key in (kit.operator, other)]
    own = [(await client.get("/v1/me")).json()["key_id"] for client in clients]
    answers = await asyncio.gather(
        *(client.delete(f"/v1/keys/{key}") for client, key in zip(clients, reversed(own), strict=True))
    )

    assert min(each.status_code for each in answers) == 204
    assert [await status(kit, key) for key in (kit.operator, other)].count(200) == 1


async def test_a_tenant_has_no_more_keys_than_its_quota(tmp_path: Path) -> None:
    async with serving(tmp_path, quotas={"keys": 2}) as kit:
        admin = kit.client(kit.key("acme"))
        answers = [await admin.post("/v1/keys", json={"name": "x"}) for _ in range(2)]

    assert [each.status_code for each in answers] == [201, 429]


# Tenants


async def test_an_operator_makes_a_tenant_and_its_first_key(kit: ServiceKit) -> None:
    operator = kit.client(kit.operator)
    made_tenant = await operator.post("/v1/tenants", json={"name": "acme", "description": "A customer."})
    key = (await operator.post("/v1/tenants/acme/keys", json={"name": "first", "scopes": ["admin"]})).json()
    listed = (await operator.get("/v1/tenants")).json()["items"]
    me = (await kit.client(key["key"]).get("/v1/me")).json()

    assert made_tenant.json() == {"name": "acme", "description": "A customer."}
    assert [each["name"] for each in listed] == ["acme", "default"]
    assert (me["tenant"], me["operator"]) == ("acme", False)
    assert codes(
        [
            await operator.post("/v1/tenants", json={"name": "acme"}),
            await operator.post("/v1/tenants/nobody/keys", json={"name": "first"}),
        ]
    ) == [(409, "changed_meanwhile"), (404, "not_found")]


async def test_whoever_is_no_operator_learns_nothing_of_tenants(kit: ServiceKit) -> None:
    admin = kit.client(kit.key("acme"))
    answers = [
        await admin.get("/v1/tenants"),
        await admin.delete("/v1/tenants/default"),
        await admin.delete("/v1/tenants/nobody"),
        await admin.get("/v1/tenants/default/keys"),
        await admin.get("/v1/tenants/nobody/keys"),
    ]

    assert {(each.status_code, each.content) for each in answers} == {(403, answers[0].content)}


async def test_a_deleted_tenant_has_nothing_left_and_its_keys_are_refused_at_once(kit: ServiceKit) -> None:
    operator = kit.client(kit.operator)
    await operator.post("/v1/tenants", json={"name": "acme"})
    token = (await operator.post("/v1/tenants/acme/keys", json={"name": "x", "scopes": ["admin"]})).json()["key"]
    await kit.catalog(token)
    await kit.client(token).post("/v1/search", json={"queries": ["commits"]})

    assert (await operator.delete("/v1/tenants/acme")).status_code == 204
    assert await status(kit, token) == 401
    await operator.post("/v1/tenants", json={"name": "acme"})
    anew = (await operator.post("/v1/tenants/acme/keys", json={"name": "x", "scopes": ["admin"]})).json()["key"]
    search = await kit.client(anew).post("/v1/search", json={"queries": ["commits"]})
    assert search.status_code == 404


async def test_an_operator_cannot_delete_the_tenant_of_the_own_key(kit: ServiceKit) -> None:
    assert codes([await kit.client(kit.operator).delete("/v1/tenants/default")]) == [(409, "own_tenant")]


async def test_administrators_read_what_was_written_in_their_tenant(kit: ServiceKit) -> None:
    admin = kit.client(kit.key("acme"))
    await admin.post("/v1/catalogs", json={"name": "default"})
    await admin.post("/v1/keys", json={"name": "x"})
    await kit.client(kit.key("other")).post("/v1/catalogs", json={"name": "secret"})
    first = (await admin.get("/v1/audit?limit=1")).json()
    second = (await admin.get("/v1/audit", params={"limit": 1, "after": first["next"]})).json()

    entries = first["items"] + second["items"]
    assert [(each["action"], each["outcome"]) for each in entries] == [
        ("POST /keys", "done"),
        ("POST /catalogs", "done"),
    ]
    assert second["next"] is None
