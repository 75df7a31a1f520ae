"""Requests that ship: which tools they are found for, what they may not do, and that stored indexes notice them."""

import lzma
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.kit.index_directories import answers, tools
from tests.test_own_index import SubstringIndex
from toolsearch import Catalog, PassThrough, Reach, SessionOptions, ToolDefinition, ToolSearch
from toolsearch.catalog.index_directory import IndexDirectory
from toolsearch.catalog.index_opening import IndexCache, IndexKeeper
from toolsearch.catalog.indexing import document_of
from toolsearch.catalog.request_packs import (
    NO_REQUESTS,
    PackedTool,
    RequestOptions,
    RequestPacks,
    cleaned_requests,
    definition_hash,
    near,
    read_tool,
    shipped_requests,
    sketch_of,
)
from toolsearch.catalog.requests_file import packed_tool
from toolsearch.catalog.sources.functions import ModuleSource
from toolsearch.catalog.sources.json_listing import JsonListingSource
from toolsearch.tools.definition import legal_name
from toolsearch.tools.naming import namespaced
from toolsearch_indexes.documents import Hit
from toolsearch_indexes.index import ToolSearchIndex
from training.request_packs import PACKED, source_text

READ = (
    "Read the complete contents of a file from the file system as text. Handles various text encodings and provides "
    "detailed error messages if the file cannot be read."
)
READ_LATER = f"{READ} Gives the first or the last lines if it is asked to."


DESCRIPTIONS: dict[str, str] = {}


def packed(server: str, name: str, description: str) -> PackedTool:
    written = definition_hash(name, description)
    DESCRIPTIONS[written] = description
    return PackedTool(server, name, written, sketch_of(description), (f"{server}: {description[:9]}",))


def described(tool: PackedTool) -> str:
    """The description that *tool* was packed with."""
    return DESCRIPTIONS[tool.definition]


def packs(*tools: PackedTool) -> RequestPacks:
    return RequestPacks(lambda: tools, version="test")


def of(server: str, name: str, description: str) -> ToolDefinition:
    return ToolDefinition(namespaced(server, name), description, server=server)


FILES = packed("filesystem", "read_text_file", READ)


@pytest.mark.parametrize(
    ("server", "name", "description"),
    [
        ("filesystem", "read_text_file", READ),
        ("filesystem", "read_text_file", READ_LATER),
        ("FileSystem", "Read-Text-File", READ),
        ("fs", "read_text_file", READ),
        ("fs", "read_text_file", READ_LATER),
        ("fs", "read_text_file", READ.replace(" ", "\n  ")),
    ],
)
def test_a_tool_has_the_requests_of_its_name_and_a_definition_that_is_the_same_or_near(server, name, description):
    assert packs(FILES).requests_for(of(server, name, description)) == ("filesystem: Read the ",)


@pytest.mark.parametrize(
    ("server", "name", "description"),
    [
        ("filesystem", "read_text_file", "Recognizes letters on scanned pages of old books."),
        ("filesystem", "read_file", READ),
        ("fs", "read_text_file", "Reads text out of a picture, with detailed confidence for every recognized letter."),
        ("fs", "read_text_file", ""),
        ("", "read_text_file", "Read a file"),
    ],
)
def test_a_tool_of_another_name_or_an_altogether_different_definition_has_none(server, name, description):
    assert packs(FILES).requests_for(of(server, name, description)) == ()


RUN = packed("aws_ec2", "RunInstances", "Launches the specified number of instances using an image that you own.")
SEND = packed("google_gmail", "users_messages_send", "Sends the specified message to the recipients in the headers.")
ISSUE = packed("github", "create_issue", "Create a new issue in a GitHub repository")
COMMAND = packed("desktop-commander", "start_process", "Start a new terminal process with state detection")


@pytest.mark.parametrize(
    ("pack", "server", "name"),
    [
        (RUN, "aws_ec2", "run_instances"),
        (RUN, "ec2", "run-instances"),
        (RUN, "aws", "runInstances"),
        (RUN, "aws", "ec2_run_instances"),
        (RUN, "", "ec2.run_instances"),
        (RUN, "toolbox", "AWS_EC2_RUN_INSTANCES"),
        (RUN, "toolbox", "EC2RunInstances"),
        (SEND, "", "gmail_users_messages_send"),
        (SEND, "google", "gmail.users.messages.send"),
        (ISSUE, "composio", "github_create_issue"),
        (ISSUE, "composio", "GitHubCreateIssue"),
    ],
)
def test_a_name_is_known_in_any_spelling_and_with_its_service_in_front(pack, server, name):
    assert packs(pack).requests_for(of(server, legal_name(name), described(pack))) == pack.requests


@pytest.mark.parametrize(
    "server",
    [
        "Desktop Commander MCP",
        "desktop-commander-mcp",
        "@wonderwhy-er/desktop-commander",
        "DesktopCommander",
        "Desktop",
    ],
)
def test_a_server_is_known_by_the_telling_words_of_its_name(server):
    """With them, a few common words of the descriptions are enough; 'Desktop' alone asks for half of them."""
    later = "Launch programs in some terminal and wait until they answer. Prefer it to any tool that analyses data."
    tool = of(server, "start_process", described(COMMAND) if server == "Desktop" else later)

    assert packs(COMMAND).requests_for(tool) == COMMAND.requests
    assert packs(COMMAND).requests_for(of("shell", "start_process", later)) == ()


def test_a_server_named_like_the_beginning_of_a_packed_name_need_not_repeat_it():
    status = packed("git", "git_status", "Shows the working tree status")
    comment = packed("atlassian", "jira_add_comment", "Add a comment to a Jira issue")

    assert packs(status).requests_for(of("git", "status", "Show the state of the tree")) == status.requests
    assert packs(comment).requests_for(of("jira", "addComment", "Add a comment to an issue")) == comment.requests
    assert packs(status).requests_for(of("orders", "status", "Shows the status of a working day")) == ()


@pytest.mark.parametrize(
    ("pack", "server", "name", "description"),
    [
        (ISSUE, "jira", "create_issue", "Create a new issue in a Jira project"),
        (ISSUE, "gitea", "create_issue", "Create a new issue in a Gitea repository, with labels"),
        (ISSUE, "", "jira_create_issue", "Create a new issue in a GitHub repository"),
        (RUN, "aws_ssm", "RunInstances", "Launches the specified number of instances using an image that you own."),
        (SEND, "google_chat", "users_messages_send", "Sends the specified message to the recipients in the headers."),
        (SEND, "google", "users_messages_send", "Sends a message of a user to a space."),
        (COMMAND, "desktop-commander", "start_process", "Begins a workflow of approval among colleagues"),
        (packed("github", "search_issues", "Search for issues"), "search", "issues", "Search all issues of a magazine"),
        (packed("gdrive", "search", "Search for files in Google Drive"), "web", "search", "Search the web for files"),
        (packed("github", "search_code", "Search code"), "sourcegraph", "search_code", "Search code"[:6]),
    ],
)
def test_the_same_name_at_another_service_does_not_bring_its_requests(pack, server, name, description):
    assert packs(pack).requests_for(of(server, name, description)) == ()


def test_of_two_packs_that_know_the_name_the_nearer_one_is_taken_and_none_where_both_are_as_near():
    guesses = "Read the complete contents of a file from the file system; encodings are guessed."
    disk = packed("disk", "read_text_file", guesses)
    copy = packed("copy", "read_text_file", READ)

    assert packs(disk, FILES).requests_for(of("fs", "read_text_file", READ_LATER)) == FILES.requests
    assert packs(disk, FILES).requests_for(of("disk", "read_text_file", READ_LATER)) == disk.requests
    assert packs(copy, FILES).requests_for(of("fs", "read_text_file", READ_LATER)) == ()
    assert packs(copy, FILES).requests_for(of("fs", "read_text_file", READ)) == ()


@pytest.mark.parametrize("server", ["fs", "filesystem", "a-server-with-a-name-of-forty-characters"])
def test_a_tool_whose_name_is_cut_has_its_requests_whatever_its_server_is_called(server):
    """A name is cut the more the longer its server's is."""
    given = "read_the_complete_contents_of_a_file_from_the_file_system_as_text"
    (tool,) = JsonListingSource([{"name": given, "description": READ}], server=server).load().tools
    pack = packed("filesystem", namespaced("", given), READ)

    assert not tool.name.endswith(given)
    assert packs(pack).requests_for(tool.definition) == pack.requests
    assert packed_tool(tool.definition, ()).name == pack.name


def test_a_short_description_has_to_be_the_very_same_under_another_servers_name():
    branch = packed("git", "git_branch", "List Git branches")

    assert packs(branch).requests_for(of("vcs", "git_branch", "List Git branches")) == branch.requests
    assert packs(branch).requests_for(of("vcs", "git_branch", "List all branches")) == ()
    assert packs(branch).requests_for(of("git", "git_branch", "List all branches")) == branch.requests


def test_a_tool_without_a_description_is_known_at_its_own_service_alone():
    pack = packs(packed("discord", "create_message", ""))
    assert pack.requests_for(of("discord", "create_message", ""))
    assert not pack.requests_for(of("queue", "create_message", ""))


def test_nearness_is_the_share_of_common_words():
    one = sketch_of("alpha beta gamma delta")

    assert near(one, one) == 1.0
    assert near(one, sketch_of("beta, gamma; Delta! of the and epsilon")) == 3 / 5
    assert near(one, frozenset()) == 0.0
    assert near(frozenset(), frozenset()) == 1.0


def test_requests_are_printable_lines_of_bounded_length_and_number():
    given = [
        "  two\n lines\t",
        "two lines",
        "",
        "\x00\u202e ",
        "x" * 201,
        "hid\u200bden",
        *(f"r{n}" for n in range(20)),
    ]

    assert cleaned_requests(given) == ("two lines", "hid den", "r0", "r1", "r2", "r3", "r4", "r5")


def test_the_packed_file_holds_its_sources():
    """Else run 'just requests'."""
    assert lzma.decompress(PACKED.read_bytes()).decode() == source_text()
    assert PACKED.stat().st_size < 800_000


@pytest.mark.parametrize("page", ["README.md", "docs/enrichment.md", "CHANGELOG.md"])
def test_pages_tell_how_many_tools_have_requests_that_ship(page):
    told = f"{len(source_text().splitlines()):,}"
    assert told in (PACKED.parents[2] / page).read_text(encoding="utf-8")


def test_every_shipped_tool_has_four_clean_requests_that_no_other_tool_of_its_server_has():
    read = [read_tool(line) for line in source_text().splitlines()]
    keys = [(tool.server, re.sub("[^a-z0-9_]", "_", tool.name.lower())) for tool in read]
    assert len(set(keys)) == len(keys) > 3_000
    assert [tool for tool in read if len(tool.requests) != 4] == []
    within = [(tool.server, request.casefold()) for tool in read for request in tool.requests]
    assert len(set(within)) == len(within)


def test_the_demos_functions_and_the_reference_servers_have_requests():
    source = shipped_requests()
    median = Catalog.from_module("statistics").get("statistics__median").definition

    assert document_of(median, source).requests == source.requests_for(median) != ()
    assert document_of(median).requests == ()
    assert "what is 3pm Berlin in Tokyo" in source.requests_for(
        of("clock", "convert_time", "Convert time between timezones")
    )


class EverythingIndex(SubstringIndex):
    """Finds the tools whose requests hold the query, those out of reach too."""

    def search(self, query: str, **options: object) -> list[Hit]:  # type: ignore[override]  # noqa: ARG002
        return [Hit(each.name, 0.5) for each in self.documents.values() if query in " ".join(each.requests)]


CONVERT = of("clock", "convert_time", "Convert time between timezones")


def test_requests_find_a_tool_and_are_shown_nowhere():
    index = EverythingIndex()
    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    with ToolSearch([CONVERT], index=index, options=options, requests=True) as engine:
        session = engine.session("s")
        before = session.tools("openai")
        answer, found = session.search("Berlin"), engine.search("Berlin")
        after = session.tools("openai")

    assert "Berlin" in " ".join(index.documents["clock__convert_time"].requests)
    assert len(after) == len(before) + 1
    assert "Berlin" not in f"{before} {answer} {found} {after}"


def test_requests_bring_no_tool_into_reach_and_none_that_the_catalog_no_longer_has():
    with ToolSearch([CONVERT], index=EverythingIndex(), requests=True) as engine:
        assert engine.search("Berlin") != []
        assert engine.search("Berlin", reach=Reach.parse(deny=["server:clock"])) == []
        engine.catalog.remove("clock__convert_time")
        assert engine.search("Berlin") == []


def test_no_requests_are_looked_up_where_that_is_said():
    index = EverythingIndex()
    with ToolSearch([CONVERT], index=index, requests=False) as engine:
        engine.catalog.add(of("watch", "convert_time", "Convert time between timezones"))
        assert [each.requests for each in index.documents.values()] == [(), ()]


class AskedRequests:
    """Notes for which tools it is asked."""

    def __init__(self, version: str) -> None:
        self.id = version
        self.options = RequestOptions()
        self.asked: list[str] = []

    def requests_for(self, definition: ToolDefinition) -> tuple[str, ...]:
        self.asked.append(definition.name)
        return (f"{self.id} {definition.name}",)


def opened(keeper: IndexKeeper, catalog: Catalog, version: str) -> Iterable[str]:
    """Open and save the index of *catalog*, and return the tools that were indexed anew."""
    source, snapshot = AskedRequests(version), catalog.snapshot()
    index, is_saved = keeper.index_for(snapshot, encoder=None, encoder_spec=None, cache=None, requests=source)
    if isinstance(keeper, IndexCache) or not is_saved:
        keeper.save(snapshot, index, refused=(), encoder_spec=None, requests=source)
    return sorted(source.asked)


@pytest.mark.parametrize("kind", [IndexDirectory, IndexCache])
def test_a_stored_index_is_made_anew_for_other_requests_and_taken_as_it_is_for_the_same(tmp_path, kind):
    everything = sorted(tools().snapshot().tools)
    assert opened(kind(tmp_path), tools(), "1") == everything
    assert opened(kind(tmp_path), tools(), "1") == []
    assert opened(kind(tmp_path), tools(), "2") == everything
    assert opened(kind(tmp_path), tools(), "2") == []

    with tools() as catalog:
        catalog.remove("send_mail")
        catalog.add(ToolDefinition("send_fax", "Send a fax"))
        assert opened(kind(tmp_path), catalog, "2") == ["send_fax"]


def test_an_index_is_opened_with_requests_only_if_it_was_made_with_them_unless_it_is_said(tmp_path: Path) -> None:
    for made, said, used in [(True, {}, True), (False, {}, False), (False, {"requests": True}, True)]:
        with ToolSearch(tools(), encoder=None, index_dir=tmp_path, requests=made) as engine:
            expected = answers(engine)
        assert IndexDirectory(tmp_path).read().requests.shipped is made

        with ToolSearch.open(tmp_path, **said) as reopened:
            assert answers(reopened) == expected
            reopened.save()
        assert IndexDirectory(tmp_path).read().requests_id == (shipped_requests() if used else NO_REQUESTS).id


def test_the_shipped_requests_find_a_function_that_does_not_say_what_people_call_it() -> None:
    """``stdev`` calls itself the square root of the sample variance."""
    functions = [tool for module in ("statistics", "random", "math") for tool in ModuleSource(module).load().tools]
    index = ToolSearchIndex(document_of(tool.definition, shipped_requests()) for tool in functions)

    assert "statistics__stdev" in [hit.name for hit in index.search("standard deviation", limit=2)]
