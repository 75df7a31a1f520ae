"""Imports: what is written, kept, refused and removed, and what of other sources is left alone."""

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import httpx2
import pytest

from tests.kit.imports import NOW_S, TENANT, ImportsKit, importing, petstore
from toolsearch.errors import BadSettingError, ConflictError, EncoderError, Kept, StillRunningError, UnknownRecordError
from toolsearch.service.catalogs.imports.sources import CatalogSource, Exchanger, SourceSecrets, ToolExchange
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.storage.contents import StoredTool
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.index import ToolSearchIndex

LISTING = [{"name": "read_log", "description": "Read the commits."}, {"name": "send_mail", "description": "Send."}]
DOCUMENT = "https://docs.example/openapi.json"


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ImportsKit]:
    async with importing(tmp_path) as kit:
        yield kit


async def test_the_operations_of_a_document_are_tools_of_its_source(kit: ImportsKit) -> None:
    source, job = await kit.add("pets", "openapi", petstore("cats", "dogs"))

    assert (job.state, job.outcome) == ("done", {"written": 2, "unchanged": 0, "removed": 0, "refused": 0})
    assert kit.tools() == {"pets__cats": "pets", "pets__dogs": "pets"}
    assert (source.origin, source.is_settled) == ("https://pets.example", True)
    assert source.last is not None
    assert (source.last.tools, source.last.refused, source.last.error) == (2, 0, "")
    assert source.last.tokens > 20


async def test_imported_tools_are_found_at_once_in_a_catalog_that_is_open(kit: ImportsKit) -> None:
    async with kit.corpora.using(CorpusRef(TENANT, "catalog", "default")) as corpus:
        await kit.add("mail", "listing", LISTING)
        assert [found.name for found in corpus.engine.search("read commits")][:1] == ["read_log"]
        await kit.imports.delete(TENANT, "default", "mail")
        assert corpus.engine.search("read commits") == []


async def test_the_stages_of_an_import_are_told_in_their_order(kit: ImportsKit) -> None:
    _, job = await kit.add("mail", "listing", [*LISTING, {"description": "nameless"}])

    assert [(step.stage, step.done, step.total, step.refused) for step in job.steps] == [
        ("waiting", 0, None, 0),
        ("reading", 0, None, 0),
        ("counting", 0, 2, 1),
        ("checking", 0, 2, 1),
        ("writing", 0, 2, 1),
        ("indexing", 0, 2, 1),
    ]


async def test_a_search_after_an_import_builds_nothing(kit: ImportsKit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a catalog that was not in memory, nor in one that was."""
    updates: list[int] = []
    update = ToolSearchIndex.update

    def counted(index: ToolSearchIndex, add: Iterable[ToolDocument] = (), remove: Iterable[str] = ()) -> None:
        updates.append(len(documents := list(add)))
        update(index, documents, remove)

    monkeypatch.setattr(ToolSearchIndex, "update", counted)
    for listing in (LISTING[:1], LISTING):
        source, job = await (
            kit.add("mail", "listing", listing)
            if listing is not LISTING
            else kit.ended(*await kit.imports.upload(TENANT, "default", "mail", listing))
        )
        assert job.state == "done"
        assert source.is_settled
        assert updates.pop() == 1
        updates.clear()
        async with kit.corpora.using(CorpusRef(TENANT, "catalog", "default")) as corpus:
            assert len(corpus.engine.search("read commits or send a letter")) == len(listing)
        assert updates == []


async def test_an_import_is_done_though_its_index_cannot_be_built(
    kit: ImportsKit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its tools are written, and a search tries again."""

    def failing(*_: object, **__: object) -> None:
        raise EncoderError("the model is gone")

    with monkeypatch.context() as patched:
        patched.setattr(ToolSearchIndex, "update", failing)
        _, job = await kit.add("mail", "listing", LISTING)
    assert (job.state, job.outcome["written"]) == ("done", 2)
    assert "the index of catalog/default is" in caplog.text
    assert "the model is gone" in caplog.text

    async with kit.corpora.using(CorpusRef(TENANT, "catalog", "default")) as corpus:
        assert [found.name for found in corpus.engine.search("read commits")][:1] == ["read_log"]


async def test_importing_again_writes_only_what_has_changed(kit: ImportsKit) -> None:
    await kit.add("mail", "listing", LISTING)
    revision = kit.storage.contents.revision(TENANT, "default")
    changed = [LISTING[0], {"name": "send_mail", "description": "Send a letter."}, {"name": "new", "description": "x"}]
    _, job = await kit.ended(*await kit.imports.upload(TENANT, "default", "mail", changed))
    assert job.outcome == {"written": 2, "unchanged": 1, "removed": 0, "refused": 0}

    _, job = await kit.ended(*await kit.imports.upload(TENANT, "default", "mail", changed[1:]))
    assert job.outcome == {"written": 0, "unchanged": 2, "removed": 1, "refused": 0}
    _, job = await kit.ended(*await kit.imports.upload(TENANT, "default", "mail", changed[1:]))
    assert job.outcome == {"written": 0, "unchanged": 2, "removed": 0, "refused": 0}
    assert kit.tools() == {"new": "mail", "send_mail": "mail"}
    assert kit.storage.contents.revision(TENANT, "default") == revision + 2


async def test_a_name_of_another_source_is_refused_with_both_owners_and_not_replaced(kit: ImportsKit) -> None:
    await kit.add("mail", "listing", LISTING)
    await kit.catalogs.upsert(TENANT, "default", [{"name": "own", "description": "Mine."}])
    claims = [*LISTING[1:], {"name": "own", "description": "Yours."}, {"name": "free", "description": "x"}]
    source, job = await kit.add("other", "listing", claims)

    assert job.outcome == {"written": 1, "unchanged": 0, "removed": 0, "refused": 2}
    assert kit.tools() == {"free": "other", "own": "", "read_log": "mail", "send_mail": "mail"}
    refused = await kit.refused(source)
    assert "'mail', one from the source 'other'" in refused["send_mail"]
    assert "itself, one from the source 'other'" in refused["own"]
    (own,) = kit.storage.contents.get(TENANT, "default", ["own"])
    assert own.document["definition"]["description"] == "Mine."


async def test_what_others_write_while_an_import_is_checked_is_not_replaced(kit: ImportsKit) -> None:
    async def write() -> None:
        await kit.catalogs.upsert(TENANT, "default", [{"name": "read_log", "description": "Mine."}])

    kit.meanwhile = write
    source, job = await kit.add("mail", "listing", LISTING)

    assert job.outcome == {"written": 1, "unchanged": 0, "removed": 0, "refused": 1}
    assert kit.tools() == {"read_log": "", "send_mail": "mail"}
    assert list(await kit.refused(source)) == ["read_log"]


async def test_names_that_begin_as_those_of_a_server_belong_to_the_server(kit: ImportsKit) -> None:
    """Whether it is connected at the moment or not."""
    await kit.imports.sources.save(CatalogSource(TENANT, "default", "git", "mcp", created_s=NOW_S))
    listing = [{"name": name, "description": "x"} for name in ("git__log", "git_log", "github__log")]
    source, _ = await kit.add("other", "listing", listing)

    assert list(kit.tools()) == ["git_log", "github__log"]
    assert "'git', one from the source 'other'" in (await kit.refused(source))["git__log"]


async def test_a_bad_tool_costs_only_itself_and_its_reason_stays_until_the_next_import(kit: ImportsKit) -> None:
    bad = {"name": "two words!", "description": "x", "inputSchema": {"type": "array"}}
    source, _ = await kit.add("mail", "listing", [*LISTING, bad])
    assert list(kit.tools()) == ["read_log", "send_mail"]
    assert len(await kit.refused(source)) == 1

    source, _ = await kit.ended(*await kit.imports.upload(TENANT, "default", "mail", LISTING))
    assert await kit.refused(source) == {}


async def test_a_document_that_cannot_be_read_leaves_the_tools_as_they_were(kit: ImportsKit) -> None:
    await kit.add("mail", "listing", LISTING)
    source, job = await kit.ended(*await kit.imports.upload(TENANT, "default", "mail", '{"tools": [1,'))

    assert (job.state, job.code) == ("failed", "source_error")
    assert "'mail' is malformed" in job.error
    assert list(kit.tools()) == ["read_log", "send_mail"]
    assert source.last is not None
    assert (source.last.tools, source.last.code) == (2, "source_error")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(LISTING),
        json.dumps(LISTING, indent=1),
        json.dumps({"tools": LISTING}),
        "\n".join(map(json.dumps, LISTING)),
        "- name: read_log\n  description: Read\n- {name: send_mail, description: Send}\n",
    ],
    ids=["json", "indented json", "an object", "json lines", "yaml"],
)
async def test_the_format_of_a_text_is_told_by_the_text(kit: ImportsKit, text: str) -> None:
    await kit.add("mail", "listing", text)
    assert list(kit.tools()) == ["read_log", "send_mail"]


async def test_what_a_tenant_has_no_room_for_is_not_written(kit: ImportsKit) -> None:
    kit.room = 1
    source, job = await kit.add("mail", "listing", LISTING)
    assert (job.state, job.code, kit.tools()) == ("failed", "too_many", {})
    assert source.last is not None
    assert source.last.error == "no room for 2 tools"


async def test_tools_that_take_the_place_of_others_need_no_room(kit: ImportsKit) -> None:
    await kit.add("mail", "listing", LISTING)
    kit.room = 0
    others = [LISTING[0], {"name": "other", "description": "Other."}]
    _, job = await kit.ended(*await kit.imports.upload(TENANT, "default", "mail", others))
    assert job.state == "done"


async def test_a_deleted_source_takes_its_tools_along_and_no_others(kit: ImportsKit) -> None:
    source, _ = await kit.add("mail", "listing", [*LISTING, {"description": "nameless"}])
    await kit.add("pets", "openapi", petstore("cats"))

    assert await kit.imports.delete(TENANT, "default", "mail") == 2
    assert kit.tools() == {"pets__cats": "pets"}
    assert await kit.refused(source) == {}
    with pytest.raises(UnknownRecordError):
        await kit.imports.sources.get(TENANT, "default", "mail")
    assert [each.name for each in await kit.imports.sources.of_catalog(TENANT, "default")] == ["pets"]


async def test_sources_of_catalogs_with_similar_names_are_kept_apart(kit: ImportsKit) -> None:
    for catalog in ("default-2", "default", "defaul"):
        await kit.imports.sources.save(CatalogSource(TENANT, catalog, "mail", "listing", created_s=NOW_S))
    assert [each.catalog for each in await kit.imports.sources.of_catalog(TENANT, "default")] == ["default"]


async def test_a_second_source_of_one_name_is_refused(kit: ImportsKit) -> None:
    await kit.add("mail", "listing", LISTING)
    with pytest.raises(ConflictError):
        await kit.add("mail", "listing", [])
    assert len(kit.tools()) == 2


async def test_what_was_changed_beside_the_tools_of_a_source_is_not_written_over_by_trying_again(
    kit: ImportsKit,
) -> None:
    tried: list[ToolExchange] = []

    def also(planned: ToolExchange) -> None:
        tried.append(planned)
        raise ConflictError("source", "mail")

    exchanger = Exchanger(kit.storage, kit.corpora, kit.imports.sources)
    with pytest.raises(ConflictError, match="source 'mail'"):
        await exchanger.exchange(TENANT, "default", "mail", [StoredTool("send", "1", {})], also=also)
    assert len(tried) == 1


async def test_a_deletion_that_others_always_overtake_says_that_the_catalog_was_changed(
    kit: ImportsKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not that an import runs, as if the source itself was changed."""

    def overtaken(tenant: str, catalog: str, **_: object) -> int:
        raise ConflictError("catalog", catalog, Kept.CONTENTS)

    await kit.add("mail", "listing", LISTING)
    monkeypatch.setattr(kit.storage.contents, "change", overtaken)
    with pytest.raises(ConflictError, match="catalog 'default'"):
        await kit.imports.delete(TENANT, "default", "mail")
    assert len(kit.tools()) == 2


async def test_a_source_is_imported_once_at_a_time(kit: ImportsKit) -> None:
    kit.web.may_answer.clear()
    source = CatalogSource(TENANT, "default", "pets", "openapi", created_s=NOW_S)
    source, job = await kit.imports.create(source, SourceSecrets(url=DOCUMENT))
    assert job is not None
    with pytest.raises(StillRunningError, match=job.id):
        await kit.imports.upload(TENANT, "default", "pets", petstore("cats"))
    with pytest.raises(StillRunningError):
        await kit.imports.refresh(TENANT, "default", "pets")

    await kit.imports.delete(TENANT, "default", "pets")  # which cancels it
    assert (await kit.imports.jobs.get(TENANT, job.id)).state == "cancelled"


# ---- documents behind URLs


async def test_a_document_behind_a_url_is_read_now_and_when_it_is_refreshed(kit: ImportsKit) -> None:
    kit.web.pages[DOCUMENT] = httpx2.Response(200, json=petstore("cats"))
    source, _ = await kit.add("pets", "openapi", secrets={"url": DOCUMENT, "document_headers": {"x-key": "s3cret-key"}})
    assert list(kit.tools()) == ["pets__cats"]

    kit.web.pages[DOCUMENT] = httpx2.Response(200, json=petstore("dogs"))
    await kit.ended(*await kit.imports.refresh(TENANT, "default", "pets"))
    assert list(kit.tools()) == ["pets__dogs"]
    assert [request.headers["x-key"] for request in kit.web.asked] == ["s3cret-key", "s3cret-key"]
    assert "s3cret-key" not in repr(source)


async def test_a_source_without_a_url_cannot_be_refreshed(kit: ImportsKit) -> None:
    await kit.add("mail", "listing", LISTING)
    with pytest.raises(BadSettingError, match="no url"):
        await kit.imports.refresh(TENANT, "default", "mail")


async def test_credentials_for_a_document_are_not_sent_where_it_redirects_to(kit: ImportsKit) -> None:
    kit.web.pages[DOCUMENT] = httpx2.Response(302, headers={"location": "https://cdn.example/openapi.json"})
    kit.web.pages["https://cdn.example/openapi.json"] = httpx2.Response(200, json=petstore("cats"))
    await kit.add("pets", "openapi", secrets={"url": DOCUMENT, "document_headers": {"x-key": "s3cret-key"}})

    assert list(kit.tools()) == ["pets__cats"]
    assert [request.headers.get("x-key") for request in kit.web.asked] == ["s3cret-key", None]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx2.Response(403), "the server answers HTTP 403"),
        (httpx2.Response(302, headers={"location": DOCUMENT}), "more than 5 redirects"),
        (httpx2.Response(200, content=b"x" * 100_001), "more bytes than the limit of 100,000"),
        (httpx2.Response(200, content=b"\xff\xfe\xfa"), "is not UTF-8"),
    ],
)
async def test_a_document_that_cannot_be_had_fails_the_import(
    kit: ImportsKit, answer: httpx2.Response, error: str
) -> None:
    kit.web.pages[DOCUMENT] = answer
    _, job = await kit.add("pets", "openapi", secrets={"url": DOCUMENT})
    assert job.state == "failed"
    assert error in job.error


# ---- where operations are sent


async def test_a_document_that_sends_its_operations_elsewhere_is_not_taken_again(kit: ImportsKit) -> None:
    """The credentials were given for the first place."""
    await kit.add("pets", "openapi", petstore("cats"))
    moved = petstore("cats", "dogs", servers=[{"url": "https://evil.example/v1"}])
    source, job = await kit.ended(*await kit.imports.upload(TENANT, "default", "pets", moved))

    assert job.state == "failed"
    assert "https://evil.example" in job.error
    assert (list(kit.tools()), source.origin) == (["pets__cats"], "https://pets.example")


async def test_an_address_that_is_relative_is_so_to_where_the_document_came_from(kit: ImportsKit) -> None:
    kit.web.pages[DOCUMENT] = httpx2.Response(200, json=petstore("cats", servers=[{"url": "/v2"}]))
    source, _ = await kit.add("pets", "openapi", secrets={"url": DOCUMENT})
    (row,) = kit.storage.contents.get(TENANT, "default", ["pets__cats"])
    assert row.document["execution"]["operation"]["base_url"] == "https://docs.example/v2"
    assert source.origin == "https://docs.example"


async def test_a_document_without_an_address_needs_one_from_its_source(kit: ImportsKit) -> None:
    _, job = await kit.add("pets", "openapi", petstore("cats", servers=[]))
    assert job.state == "failed"
    assert "give the source a base_url" in job.error

    source, job = await kit.add("cats", "openapi", petstore("cats", servers=[]), base_url="http://127.0.0.1:9/api")
    assert (job.state, source.origin) == ("done", "http://127.0.0.1:9")


async def test_a_source_that_awaits_its_document_has_no_job(kit: ImportsKit) -> None:
    awaiting = CatalogSource(TENANT, "default", "mail", "listing", created_s=NOW_S)
    source, job = await kit.imports.create(awaiting, SourceSecrets())
    assert (job, source.job, source.last) == (None, "", None)
