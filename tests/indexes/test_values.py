"""Values in a request, such as paths and URLs: what counts as one, and that their words bring no tool forward."""

import pytest

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Strategy
from toolsearch_indexes.values import without_values

FILES = [
    ToolDocument("read_file", "Read the contents of a file"),
    ToolDocument("fetch", "Fetch a web page by its URL"),
    ToolDocument("list_issues", "List the issues of an app on the server"),
    ToolDocument("get_weather", "Get the weather"),
]
RANKED: list[Strategy] = ["keyword", "semantic", "hybrid"]
ENCODER = open_encoder(BUILT_IN)


@pytest.mark.parametrize(
    ("request_", "plain"),
    [
        ("Read ./app/src/server.py", "Read file"),
        ("open `C:\\Users\\bo\\plan.docx`, please", "open `docx file`, please"),
        ("convert a.mp4 to b.gif.", "convert mp4 file to gif file."),
        ("list /var/log and docs/", "list directory and directory"),
        ("clone git@github.com:acme/app.git", "clone git repository URL"),
        ("see https://example.com/a?b=1!", "see web page URL!"),
        ("mail ana.b@example.com", "mail email address"),
        ("revert 9b7b1e9e and stop i-0abc123def4", "revert id and stop id"),
        ("get 550e8400-e29b-41d4-a716-446655440000", "get id"),
        ("show DEADBEEF01 and 3F2504E0-4F89-41D3-9A0C-0305E82C3301.", "show id and id."),
        ("describe arn:aws:s3:::mybucket.", "describe s3 id."),
        ("query postgres://u:p@h/db, get redis://h:6379", "query postgres URL, get redis URL"),
        ("read file:///a/b.py, file:///etc/hosts", "read file, directory"),
        ("see https://x.org/Foo_(bar)?ids=1,2&a=b, please", "see web page URL, please"),
        ("fix src/app.ts:12:3 and a.py#L3", "fix file and file"),
        (
            "\u6253\u5f00 https://a.com/a\uff0c\u7136\u540e \u628a /tmp/a.txt\u6587\u4ef6",
            "\u6253\u5f00 web page URL\uff0c\u7136\u540e \u628a file\u6587\u4ef6",
        ),
    ],
)
def test_a_value_becomes_the_words_for_its_kind(request_: str, plain: str) -> None:
    assert without_values(request_) == plain


@pytest.mark.parametrize(
    "request_",
    [
        "az.vm.create",
        "repos/list-for-user",
        "fs.read",
        "a Next.js app on Node.js",
        "and/or TCP/IP 3/4 @scope/name",
        "version 1.2.3, e.g. in the U.S.",
        "a facade of the last decade",
        "GET /repos/{owner}/{repo}/issues or POST /v1/charges",
        "deploy next.js, install node.js",
        r"replace \t, match \d+",
        "section 2.h, vitamin b.c, 1e1000000",
        "",
    ],
)
def test_names_and_plain_words_are_no_values(request_: str) -> None:
    assert without_values(request_) == request_


@pytest.mark.parametrize("strategy", RANKED)
def test_the_words_of_a_path_bring_no_tool_forward(strategy: Strategy) -> None:
    index = ToolSearchIndex(FILES, encoder=ENCODER)

    [first, *_] = index.search("read ./issues/list/server_weather.py", strategy=strategy)

    assert first.name == "read_file"


def test_a_tool_that_is_named_like_a_file_is_found_in_a_request() -> None:
    index = ToolSearchIndex([*FILES, ToolDocument("deploy.sh", "Ship it")])

    assert index.search("run deploy.sh for me")[0].name == "deploy.sh"


def test_a_tool_is_not_found_for_a_file_that_its_requests_mention() -> None:
    requests = ("commit src/server.py and notes.txt",)
    index = ToolSearchIndex([*FILES, ToolDocument("git_commit", "Record changes", requests=requests)], encoder=ENCODER)

    assert index.search("read src/server.py")[0].name == "read_file"


def test_an_explanation_tells_the_words_that_were_searched() -> None:
    index = ToolSearchIndex(FILES)

    explained = index.explain("read ./issues/server.py", "read_file")

    assert sorted(match.word for match in explained.words) == ["file", "read"]
    assert not explained.missing
