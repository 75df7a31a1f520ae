"""What whoever runs the service sees: health, metrics, logs and traces, none of which tells what was said."""

import asyncio
import json
import logging

import pytest
from opentelemetry.trace import SpanKind

from tests.kit.service import serving
from tests.kit.telemetry_recorder import Recorder
from toolsearch.cli.output import log_from, logs_on_stderr
from toolsearch.errors import Kept, StorageError
from toolsearch.service import app as app_module

SECRET = "swordfish"


@pytest.fixture
async def kit(tmp_path):
    async with serving(tmp_path) as kit:
        yield kit


async def scraped(kit) -> dict[str, float]:
    async with kit.client(kit.operator) as client:
        answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    rows = [line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in rows}


async def test_requests_are_counted_by_the_template_of_their_route_and_by_their_status(kit):
    await kit.catalog(kit.operator, "secret-plans")
    async with kit.client(kit.operator) as client:
        assert (await client.get("/v1/no-such-thing/secret-plans")).status_code == 404

    figures = await scraped(kit)
    written = '{method="POST",route="/v1/catalogs/{catalog}/tools",status="200"}'
    assert figures[f"toolsearch_requests_total{written}"] == 1
    assert figures['toolsearch_request_seconds_count{route="/v1/catalogs/{catalog}/tools"}'] == 1
    assert figures['toolsearch_requests_total{method="GET",route="other",status="404"}'] == 1
    assert figures["toolsearch_requests_running"] == 1  # the one that asks for the figures
    assert not [name for name in figures if "secret-plans" in name]


async def test_what_was_refused_is_counted_by_its_code(kit):
    async with kit.client("ts_no_such_key") as client:
        await client.post("/v1/search", json={"queries": ["a"]})

    assert (await scraped(kit))['toolsearch_problems_total{code="not_authenticated"}'] == 1


async def test_methods_that_are_made_up_are_one(kit):
    async with kit.client(kit.operator) as client:
        for method in ("BREW", "STEEP"):
            await client.request(method, "/v1/catalogs")

    assert {name for name in await scraped(kit) if "BREW" in name or "STEEP" in name} == set()


async def test_what_is_in_memory_is_told(kit):
    await kit.catalog(kit.operator)
    async with kit.client(kit.operator) as client:
        assert (await client.post("/v1/search", json={"queries": ["read a log"]})).status_code == 200
        assert (await client.post("/v1/sessions", json={"catalog": "default"})).status_code == 201

    figures = await scraped(kit)
    assert (figures["toolsearch_corpora"], figures["toolsearch_sessions"]) == (1, 1)
    assert figures["toolsearch_corpora_bytes"] > 0
    assert figures['toolsearch_activity_total{what="searches"}'] == 1
    assert figures["toolsearch_evictions_total"] == 0


async def test_a_broken_store_makes_the_service_unready_and_is_counted(kit, monkeypatch):
    def broken(*_, **__):
        raise StorageError("the disk is gone", Kept.RECORDS)

    monkeypatch.setattr(kit.service.storage.records, "put", broken)
    async with kit.client() as client:
        answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()) == (503, {"status": "store unusable"})


async def test_figures_are_told_while_the_store_is_away(kit, monkeypatch):
    def away(*_, **__):
        raise StorageError("nobody answers", Kept.RECORDS, retry_after_s=2)

    async with kit.client(kit.operator) as client:
        assert (await client.get("/v1/me")).status_code == 200  # the key is known for some seconds
        monkeypatch.setattr(kit.service.storage.records, "page", away)
        figures = (await client.get("/metrics")).text
    assert "toolsearch_corpora 0" in figures
    assert "toolsearch_sessions " not in figures


async def test_a_store_that_is_away_makes_the_service_unready_without_a_line_in_the_log(kit, monkeypatch, caplog):
    def away(*_, **__):
        raise StorageError("nobody answers", Kept.RECORDS, retry_after_s=2)

    monkeypatch.setattr(kit.service.storage.records, "put", away)
    async with kit.client() as client:
        answers = [await client.get(path) for path in ("/healthz", "/readyz")]

    assert [(each.status_code, each.json()["status"]) for each in answers] == [(200, "ok"), (503, "store unavailable")]
    assert "nobody answers" not in caplog.text


async def test_a_store_that_is_broken_for_good_is_told_to_the_log_and_not_to_who_asks(kit, monkeypatch, caplog):
    def broken(*_, **__):
        raise StorageError("cannot use the records in /srv/data/toolsearch.db: no such table", Kept.RECORDS)

    monkeypatch.setattr(kit.service.storage.records, "page", broken)
    async with kit.client(kit.operator) as client:
        answer = await client.get("/v1/catalogs")

    assert (answer.status_code, answer.json()["code"]) == (500, "record_store_error")
    assert "/srv" not in answer.text
    assert "/srv/data/toolsearch.db" in caplog.text


async def test_whether_it_is_ready_is_written_once_a_second_however_often_it_is_asked(kit, monkeypatch):
    written = []
    put = kit.service.storage.records.put
    monkeypatch.setattr(kit.service.storage.records, "put", lambda *of, **more: written.append(put(*of, **more)))
    async with kit.client() as client:
        for _ in range(2):
            await asyncio.gather(*(client.get("/readyz") for _ in range(3)))
            kit.steady.now_s += 1

    assert len(written) == 2


async def test_a_service_that_ends_is_not_ready(kit):
    kit.service.shutdown.begin()
    async with kit.client() as client:
        answers = [await client.get(path) for path in ("/healthz", "/readyz")]

    assert [(each.status_code, each.json()["status"]) for each in answers] == [(200, "ok"), (503, "stopping")]


async def test_metrics_are_for_operators(kit):
    key = kit.key("default", "admin")
    async with kit.client() as nobody, kit.client(key) as administrator:
        assert (await nobody.get("/metrics")).status_code == 401
        assert (await administrator.get("/metrics")).status_code == 403


@pytest.mark.parametrize(("headers", "status"), [({}, 200), ({"x-forwarded-for": "1.2.3.4"}, 401)])
async def test_a_setting_opens_metrics_to_programs_on_this_machine_but_not_through_a_proxy(tmp_path, headers, status):
    async with serving(tmp_path, serve={"local_metrics": True}) as kit, kit.client(**headers) as client:
        assert (await client.get("/metrics")).status_code == status


async def test_the_log_names_the_request_and_who_asked_but_nothing_that_was_said(kit, capsys):
    await kit.catalog(kit.operator)
    with logs_on_stderr():
        log_from("info", "json")
        async with kit.client(kit.operator, **{"x-request-id": "mine-1"}) as client:
            await client.post(f"/v1/search?q={SECRET}", json={"queries": [SECRET]})
            await client.get("/healthz")

    lines = capsys.readouterr().err.splitlines()
    (line,) = [line for line in lines if json.loads(line)["logger"] == "toolsearch.service.requests"]
    told = json.loads(line)
    assert {name: told[name] for name in ("request_id", "method", "route", "status", "tenant")} == {
        "request_id": "mine-1",
        "method": "POST",
        "route": "/v1/search",
        "status": 200,
        "tenant": "default",
    }
    assert told["key"].startswith("key_")
    assert told["ms"] > 0
    assert SECRET not in line
    assert kit.operator not in line


async def test_an_error_that_nobody_foresaw_is_logged_without_its_message(kit, capsys, monkeypatch):
    async def broken(*_, **__):
        raise RuntimeError(SECRET)

    monkeypatch.setattr(type(kit.service.catalogs), "create", broken)
    with logs_on_stderr():
        log_from("info", "json")
        async with kit.client(kit.operator) as client:
            answer = await client.post("/v1/catalogs", json={"name": "a"})

    *_, failed, request = map(json.loads, capsys.readouterr().err.splitlines())
    assert (failed["error"], "broken" in failed["at"][-1]) == ("RuntimeError", True)
    assert (request["status"], request["code"]) == (500, "internal_error")
    assert SECRET not in json.dumps([failed, request]) + answer.text


async def test_a_request_is_a_span_below_the_callers_with_the_search_below_it(tmp_path, monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(app_module, "build_telemetry", lambda _: recorder.telemetry)
    async with serving(tmp_path) as kit:
        await kit.catalog(kit.operator)
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        async with kit.client(kit.operator, traceparent=parent) as client:
            await client.post("/v1/search", json={"queries": [SECRET]})

    span = recorder.span("POST /v1/search")
    assert span.kind is SpanKind.SERVER
    assert f"{span.parent.span_id:x}" == "b7ad6b7169203331"
    assert (span.attributes["http.route"], span.attributes["http.response.status_code"]) == ("/v1/search", 200)
    assert SECRET not in str(dict(span.attributes))


def test_the_loggers_are_as_they_were_once_a_command_has_ended():
    before = logging.getLogger("toolsearch").level
    with logs_on_stderr():
        log_from("debug", "json")
    assert logging.getLogger("toolsearch").level == before
