"""Both clients against a service that is a process of its own."""

import pytest

from tests.kit.service_process import service_process
from toolsearch.api.imports import JobBody, NewListingSource
from toolsearch.client import AsyncToolSearchClient, ToolSearchClient
from toolsearch.errors import ServiceError

TOOLS = [{"name": f"tool_{number:03}", "description": f"Do the task number {number}."} for number in range(120)]
MAIL = {"name": "send_mail", "description": "Send a letter to somebody.", "input_schema": {"type": "object"}}


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    with service_process(tmp_path_factory.mktemp("data")) as started:
        yield started


@pytest.fixture
def client(started):
    with ToolSearchClient(started.url, started.key) as client:
        yield client


def test_from_a_catalog_to_a_session(client):
    catalog = client.create_catalog("office", description="What an office does.")
    written = client.write_tools("office", [MAIL])
    found = client.search("write a letter", catalog="office", limit=1)
    session = client.open_session(catalog="office", pins=["send_mail"])
    tools = client.session_tools(session.id, format="anthropic")

    assert (catalog.name, written.created) == ("office", 1)
    assert [tool.name for tool in found.answers[0].tools] == ["send_mail"]
    assert "send_mail" in [tool["name"] for tool in tools["tools"]]
    assert client.session(session.id).catalog == "office"
    client.delete_session(session.id)
    with pytest.raises(ServiceError) as raised:
        client.session(session.id)
    assert (raised.value.code, raised.value.status) == ("unknown_session", 404)
    assert raised.value.request_id.startswith("req_")


def test_a_turn_begins_with_the_users_words(client):
    client.create_catalog("post")
    client.write_tools("post", [MAIL, *TOOLS])
    session = client.open_session(catalog="post")

    begun = client.begin_turn(session.id, "Send a letter to somebody.", "openai-responses", model="gpt-5.6")
    [message] = begun.messages
    assert ([tool["name"] for tool in message["tools"]], begun.names) == (["send_mail"], [])
    assert client.begin_turn(session.id).messages == []


def test_a_list_is_every_page_of_it(client):
    client.create_catalog("many")
    client.write_tools("many", TOOLS)

    assert [tool.name for tool in client.tools("many")] == [tool["name"] for tool in TOOLS]
    assert list(client.tools("many", kind=["skill", "prompt"])) == []
    assert client.search("a", catalog="many", kinds=["skill"]).answers[0].tools == []


def test_an_import_is_followed_to_its_end(client):
    client.create_catalog("imported")
    started = client.add_source("imported", NewListingSource(name="list", kind="listing", document=[MAIL]))
    assert started.job is not None
    *steps, ended = client.job_events(started.job.id)

    assert steps
    assert isinstance(ended, JobBody)
    assert (ended.state, ended.id) == ("done", started.job.id)
    assert [source.name for source in client.sources("imported")] == ["list"]


def test_a_job_that_is_not_there_is_an_error_and_no_empty_stream(client):
    with pytest.raises(ServiceError) as raised:
        next(client.job_events("job_none"))
    assert raised.value.status == 404


async def test_the_async_client_does_the_same(started):
    async with AsyncToolSearchClient(started.url, started.key) as client:
        await client.create_catalog("async")
        await client.write_tools("async", TOOLS)
        names = [tool.name async for tool in client.tools("async")]
        source = NewListingSource(name="list", kind="listing", document=[MAIL])
        job = (await client.add_source("async", source)).job
        assert job is not None
        events = [event async for event in client.job_events(job.id)]

        assert names == [tool["name"] for tool in TOOLS]
        assert isinstance(events[-1], JobBody)
        with pytest.raises(ServiceError):
            await client.catalog("none")


async def test_a_service_that_is_not_there_is_told():
    async def no_wait(_: float) -> None:
        """Do not wait."""

    async with AsyncToolSearchClient("http://127.0.0.1:9", "ts_k", sleep=no_wait) as client:
        with pytest.raises(ServiceError, match="cannot be reached") as raised:
            await client.me()
    assert raised.value.code == "service_unreachable"


def test_without_its_extra_the_client_says_what_to_install(run_python):
    said = run_python(
        "-c",
        """
import sys
sys.modules["httpx2"] = None
from toolsearch.errors import MissingExtraError
try:
    import toolsearch.client
except MissingExtraError as error:
    print(error)
""",
    ).out
    assert "pip install 'toolsearch[client]'" in said
