"""The forms in which language models ask for a tool, over a catalogue of several servers: each finds it by keyword."""

from collections.abc import Mapping, Sequence

import pytest

from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.encoders.static import HashingEncoder
from toolsearch_indexes.index import ToolSearchIndex


def tool(name: str, description: str, parameters: str = "", enums: str = "") -> ToolDocument:
    """*name* is ``server__local``; *parameters* are names, split at spaces."""
    server, _, local_name = name.partition("__")
    return ToolDocument(
        name,
        description,
        parameter_names=tuple(parameters.split()),
        parameter_text=enums,
        server=server,
        local_name=local_name,
    )


CATALOG = [
    tool("github__create_issue", "Open a new issue in a repository", "owner repo title body labels assignees"),
    tool("github__list_issues", "List the issues of a repository", "owner repo state", "open closed all"),
    tool("github__create_pull_request", "Open a pull request from one branch into another", "repo head base draft"),
    tool("github__merge_pull_request", "Merge a pull request", "owner repo merge_method", "merge squash rebase"),
    tool("github__search_code", "Search code over all repositories", "q sort order"),
    tool("github__get_file_contents", "Get the contents of a file in a repository", "owner repo path ref"),
    tool("gitlab__create_issue", "Open a new issue in a project", "project_id title description"),
    tool("gitlab__list_merge_requests", "List the merge requests of a project", "project_id state"),
    tool("gitlab__run_pipeline", "Start a CI pipeline on a branch", "project_id ref variables"),
    tool("slack__post_message", "Post a message in a channel", "channel_id text thread_ts"),
    tool("slack__list_channels", "List the channels of the workspace", "cursor", "public_channel private_channel"),
    tool("slack__add_reaction", "Add an emoji reaction to a message", "channel_id timestamp emoji"),
    tool("gmail__send_email", "Send an email", "to cc bcc subject body attachments"),
    tool("gmail__search_threads", "Search the mailbox and return matching threads", "query label_ids"),
    tool("calendar__create_event", "Add an event to a calendar", "summary start end attendees recurrence"),
    tool("calendar__find_free_time", "Find when all attendees are free", "attendees duration_minutes"),
    tool("calendar__delete_event", "Remove an event; guests are told that it was canceled", "event_id notify"),
    tool("calendar__set_color", "Change the color of an event", "event_id color_id", "lavender sage tangerine"),
    tool("filesystem__read_file", "Read a text file", "path head tail encoding", "utf-8 latin-1"),
    tool("filesystem__write_file", "Write a text file, replacing what is there", "path content"),
    tool("filesystem__list_directory", "List what is in a directory", "path"),
    tool("filesystem__move_file", "Move or rename a file", "source destination"),
    tool("filesystem__search_files", "Find files whose names match a pattern", "path pattern exclude_patterns"),
    tool("weather__get_forecast", "Weather forecast of the next days for a place", "place days", "metric imperial"),
    tool("weather__get_current_conditions", "Temperature, wind and humidity at a place right now", "place"),
    tool("weather__list_alerts", "Active storm and flood warnings of a region", "region severity"),
    tool("stripe__create_invoice", "Draft an invoice for a customer", "customer currency due_date", "usd eur gbp"),
    tool("stripe__refund_payment", "Give a customer their money back", "charge_id amount", "duplicate fraudulent"),
    tool("stripe__list_subscriptions", "List the subscriptions of a customer", "customer status", "past_due canceled"),
    tool("postgres__run_query", "Run a read-only SQL query", "sql timeout_ms"),
    tool("postgres__describe_table", "Show the columns and indexes of a table", "schema table"),
    tool("maps__get_directions", "Directions between two places", "origin destination mode", "transit bicycling"),
    tool("maps__geocode_address", "Turn a street address into coordinates", "address"),
    tool("maps__center_view", "Center the map on a place", "latitude longitude zoom"),
    tool("browser__take_screenshot", "Take a picture of the page that is open", "full_page selector"),
    tool("browser__click_element", "Click an element of the page", "selector"),
    tool("shop__browse_catalog", "Browse the catalog of products", "category page"),
    tool("shop__organize_wishlist", "Organize the wish list into groups", "group_by"),
    tool("docs__translate_text", "Translate text into another language", "text target_language"),
    tool("docs__summarize_document", "Summarize a long document", "document_id max_words"),
    tool("time__convert_timezone", "Convert a time between time zones", "time from_zone to_zone"),
    tool("iam__update_role", "Change the description or the session duration of a role", "role_name duration"),
    tool("iam__update_role_description", "Change the description of a role", "role_name description"),
    tool("iam__update_assume_role_policy", "Change the policy of who may assume a role", "role_name policy_document"),
    tool("lambda__invoke_function", "Invoke a function and return what it gives", "function_name payload"),
    tool("lambda__list_code_signing_configs", "List code signing configurations", "marker max_items"),
    tool("lambda__list_functions_by_code_signing_config", "List functions with a code signing configuration", "arn"),
    tool("home__set_thermostat", "Set the temperature of a room", "room degrees hvac_mode", "heat cool eco"),
]  # fmt: skip


@pytest.fixture(scope="module")
def index() -> ToolSearchIndex:
    return ToolSearchIndex(CATALOG, encoder=HashingEncoder(64))


def found(index: ToolSearchIndex, query: str) -> list[str]:
    return [hit.name for hit in index.search(query, limit=3, strategy="keyword")]


def cases(queries: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """*queries* by the tool that they want."""
    return [(query, wanted) for wanted, asked in queries.items() for query in asked]


@pytest.mark.parametrize(("query", "wanted"), cases({
    "github__create_issue": [
        "mcp__github__create_issue", "github__create_issue", "github.create_issue", "github:create_issue",
        "github/create_issue", "github-create_issue", "github_create_issue", "mcp_github_create_issue",
        "mcp.github.create_issue", "server=github tool=create_issue", "github::create_issue", "github > create_issue",
        "create_issue@github",
    ],
    "slack__post_message": [
        "mcp__claude_ai__slack__post_message", "functions.post_message", "functions.slack__post_message",
    ],
    "filesystem__read_file": ["tools.read_file", "tool:read_file", "default_api.read_file"],
    "gitlab__create_issue": ["gitlab.create_issue", "create_issue (gitlab)", "gitlab create_issue"],
}))  # fmt: skip
def test_a_prefixed_name_as_clients_write_it_finds_its_tool_first(
    index: ToolSearchIndex, query: str, wanted: str
) -> None:
    assert found(index, query)[0] == wanted


@pytest.mark.parametrize(("query", "wanted"), cases({
    "stripe__refund_payment": [
        "refundPayment", "RefundPayment", "refund-payment", "refund payment", "REFUND_PAYMENT", "Refund Payment",
        "refundpayment", "StripeRefundPayment", "stripeRefundPayment", "stripe-refund-payment",
    ],
    "github__merge_pull_request": ["mergePullRequest"],
    "gitlab__list_merge_requests": ["list-merge-requests"],
    "github__get_file_contents": ["getFileContents"],
    "github__search_code": ["SEARCH CODE"],
    "browser__take_screenshot": ["TAKE A SCREENSHOT", "takescreenshot"],
    "time__convert_timezone": ["CONVERT TIMEZONE"],
    "gmail__send_email": ["SEND_EMAIL"],
    "github__create_issue": ["GitHubCreateIssue", "gitHubCreateIssue", "createIssueGithub"],
}))  # fmt: skip
def test_a_name_in_another_case_finds_its_tool_first(index: ToolSearchIndex, query: str, wanted: str) -> None:
    assert found(index, query)[0] == wanted


@pytest.mark.parametrize(("query", "wanted"), cases({
    "iam__update_role": [
        "update_role", "iam__update_role", "mcp__iam__update_role", "functions.iam__update_role", "iam.update_role",
        "iam/update_role", "iam:update_role", "iam_update_role", "iam-update-role", "functions.update_role",
        "updateRole", "UpdateRole", "update-role", "update role", "UPDATE_ROLE", '"update_role"', "`update_role`",
        "update_role()", "iamUpdateRole", "the update_role tool",
    ],
    "lambda__list_code_signing_configs": [
        "list_code_signing_configs", "lambda__list_code_signing_configs", "mcp__lambda__list_code_signing_configs",
        "lambda.list_code_signing_configs", "lambda_list_code_signing_configs", "listCodeSigningConfigs",
        "ListCodeSigningConfigs", "list-code-signing-configs", "list code signing configs",
        '"list_code_signing_configs"', "functions.lambda__list_code_signing_configs", "list_code_signing_config",
        "functions.list_code_signing_configs",
    ],
}))  # fmt: skip
def test_a_name_that_is_the_beginning_of_another_finds_its_own_tool_first(
    index: ToolSearchIndex, query: str, wanted: str
) -> None:
    assert found(index, query)[0] == wanted


@pytest.mark.parametrize("strategy", ["keyword", "hybrid"])
@pytest.mark.parametrize("query", [
    "iam__update_role", "update_role", "UpdateRole", "updateRole", "UPDATE-ROLE", "update role", "Update Role",
    "iam.update_role", "iam/update_role", "iam:update_role", "iam::update_role", "iam-update-role", "iam update role",
    "IamUpdateRole", "mcp__iam__update_role", "mcp_iam_update_role", "mcp.iam.update_role",
    "mcp__aws__iam__update_role", "functions.update_role", "functions.iam__update_role", "tools.updateRole",
    "tool:update_role", "default_api.update_role", '"update_role"', "`update_role`", "update_role()",
    "`iam.updateRole()`", "update_role.", "**update_role**", "“update_role”", "update_role(name='x')",
])  # fmt: skip
def test_a_name_in_any_form_is_known_for_one(index: ToolSearchIndex, query: str, strategy: str) -> None:
    """Not ranked by its words: the score says so, and a longer name with the same words does not compete."""
    assert index.search(query, strategy=strategy)[0] == Hit("iam__update_role", 1.0, "high")
    assert index.search(f"select:{query}") == [Hit("iam__update_role", 1.0, "high")]


def test_of_several_readings_of_a_name_the_most_literal_one_wins() -> None:
    names = ("UpdateRole", "iam__update_role", "update_role", "functions__list")
    index = ToolSearchIndex([tool(name, "") if "__" in name else ToolDocument(name) for name in names])

    def known(query: str) -> list[str]:
        return [hit.name for hit in index.search(f"select:{query}")]

    assert known("updaterole") == ["UpdateRole"]
    assert known("update_role") == ["update_role"]
    assert known("Update_Role") == ["update_role", "iam__update_role"]
    assert known("update-role") == ["UpdateRole", "iam__update_role", "update_role"]
    assert known("iam.update_role") == ["iam__update_role"]
    assert known("functions.list") == ["functions__list"]


def test_words_that_are_a_name_leave_the_other_tools_behind_it() -> None:
    index = ToolSearchIndex(
        [ToolDocument("email", "Folders"), ToolDocument("send", "Send an email"), ToolDocument("log_in")]
    )

    assert found(index, "email") == ["email", "send"]
    assert found(index, "login") == found(index, "log in") == ["log_in"]


def test_a_name_in_another_form_is_held_to_the_reach(index: ToolSearchIndex) -> None:
    """Only GitLab's may be seen: it is what the name means, and GitHub's is nothing at all."""
    reach = {"gitlab__create_issue"}

    for query in ("create issue", "createIssue", "functions.create_issue"):
        assert index.search(f"select:{query}", within=reach) == [Hit("gitlab__create_issue", 1.0, "high")]
        assert index.search(query, within=reach) == [Hit("gitlab__create_issue", 1.0, "high")]
    assert index.search("select:github.create_issue", within=reach) == []


@pytest.mark.parametrize(("query", "wanted"), cases({
    "gmail__send_email": [
        '"send_email"', "'send_email'", "`send_email`", "send_email()", "send_email.", "send_email?", "send_email,",
        "send_email;", "send_email!", "<send_email>", "[send_email]", "**send_email**", '{"name": "send_email"}',
        "send_email(to, subject)", "- send_email", "“send_email”", "«send_email»", "send an email!!!",
    ],
    "github__merge_pull_request": ['"merge a pull request".'],
    "weather__get_forecast": ["weather forecast..."],
    "stripe__create_invoice": ["#create_invoice", "@create_invoice", "/create_invoice", "create_invoice:"],
}))  # fmt: skip
def test_quotes_brackets_and_punctuation_around_a_name_or_a_phrase_change_nothing(
    index: ToolSearchIndex, query: str, wanted: str
) -> None:
    assert found(index, query)[0] == wanted


@pytest.mark.parametrize(("query", "wanted"), cases({
    "github__list_issues": ["github issues", "issues on github", "Git Hub issues"],
    "github__create_issue": ["github: create an issue"],
    "gitlab__create_issue": ["gitlab issue", "new issue in gitlab"],
    "slack__post_message": ["slack message", "message on slack"],
    "gmail__search_threads": ["gmail search"],
    "stripe__create_invoice": ["stripe invoice"],
    "postgres__describe_table": ["postgres table"],
    "calendar__create_event": ["google calendar event"],
    "filesystem__search_files": ["filesystem search"],
    "github__search_code": ["GitHub search"],
    "postgres__run_query": ["PostgreSQL query"],
    "weather__get_forecast": ["the weather server forecast"],
    "browser__click_element": ["browser click"],
    "github__merge_pull_request": ["GitHub's pull requests merge"],
    "slack__list_channels": ["server:slack channels"],
}))  # fmt: skip
def test_the_name_of_a_server_prefers_its_tools(index: ToolSearchIndex, query: str, wanted: str) -> None:
    assert found(index, query)[0] == wanted


@pytest.mark.parametrize(("query", "wanted"), cases({
    "gmail__send_email": [
        "I need a tool that can send an email", "find tool to send an email", "function to send email",
        "a tool for sending emails", "call send_email",
    ],
    "github__merge_pull_request": ["search for a tool which merges pull requests"],
    "browser__take_screenshot": ["is there a tool to take a screenshot?"],
    "stripe__refund_payment": ["do you have any function for refunding a payment"],
    "weather__get_forecast": ["tool for weather forecast"],
    "docs__translate_text": ["which tool can translate text"],
    "maps__geocode_address": ["API to geocode an address"],
    "time__convert_timezone": ["capability: convert time zones"],
    "filesystem__move_file": ["please help me find a tool to move a file"],
    "home__set_thermostat": ["can you set the thermostat for me please"],
    "slack__list_channels": ["I want to list the channels"],
    "docs__summarize_document": ["how do I summarize a document"],
    "postgres__describe_table": ["looking for something that describes a table"],
    "calendar__find_free_time": ["search phrase: find free time of attendees"],
    "slack__add_reaction": ["use a tool to add an emoji reaction"],
    "filesystem__write_file": ["get me a function that will write a file"],
    "filesystem__read_file": ["tool name for reading a file", "use the read_file tool"],
    "stripe__create_invoice": ["find me the best available tool to draft an invoice", "the tool named create_invoice"],
    "maps__get_directions": ["let me see the tools for getting directions"],
    "stripe__list_subscriptions": ["endpoint for listing subscriptions"],
    "github__search_code": ["MCP tool to search code"],
    "weather__list_alerts": ["MCP server for weather alerts"],
    "postgres__run_query": ["search tools: run sql query"],
    "calendar__delete_event": ["tool to delete event from calendar"],
}))  # fmt: skip
def test_filler_words_around_a_need_change_nothing(index: ToolSearchIndex, query: str, wanted: str) -> None:
    assert found(index, query)[0] == wanted


@pytest.mark.parametrize(("query", "wanted"), cases({
    "gmail__send_email": ["emails", "sending emails"],
    "slack__post_message": ["posting messages"],
    "stripe__create_invoice": ["invoices for customers"],
    "stripe__refund_payment": ["refunding payments"],
    "weather__get_forecast": ["forecasts"],
    "browser__take_screenshot": ["screenshots"],
    "filesystem__move_file": ["moving files"],
    "docs__translate_text": ["translating texts", "translations", "translation"],
    "github__merge_pull_request": ["pull requests merging"],
    "filesystem__list_directory": ["directories"],
    "maps__geocode_address": ["addresses"],
    "stripe__list_subscriptions": ["subscriptions", "subscription"],
    "postgres__run_query": ["queries"],
    "slack__add_reaction": ["reactions"],
    "docs__summarize_document": ["summaries of documents", "summarized documents", "summary of a document"],
    "calendar__delete_event": ["deletion of an event", "removal of an event"],
    "time__convert_timezone": ["conversion between time zones", "timezones", "time zone"],
}))  # fmt: skip
def test_plural_and_inflected_words_find_the_tool(index: ToolSearchIndex, query: str, wanted: str) -> None:
    assert wanted in found(index, query)


@pytest.mark.parametrize(("query", "wanted"), cases({
    "gmail__send_email": ["send emial", "send_emial"],
    "weather__get_forecast": ["wether forecast", "weather forcast"],
    "stripe__create_invoice": ["create inovice", "creat invoice", "createInvocie"],
    "browser__take_screenshot": ["screenshoot"],
    "docs__translate_text": ["tranlsate"],
    "stripe__refund_payment": ["refnd payment"],
    "calendar__create_event": ["calender event"],
    "github__create_pull_request": ["pull reqest"],
    "filesystem__list_directory": ["list direcotry"],
    "docs__summarize_document": ["summerize document"],
    "time__convert_timezone": ["convert timezoen"],
    "home__set_thermostat": ["thermostate"],
    "maps__geocode_address": ["geocode adress"],
    "github__create_issue": ["githbu create issue"],
    "github__list_issues": ["githib issues"],
    "postgres__run_query": ["postgress query"],
    "slack__post_message": ["slak message", "send  mesage"],
    "stripe__list_subscriptions": ["subscribtions"],
    "maps__get_directions": ["directons"],
}))  # fmt: skip
def test_a_word_with_a_typo_finds_the_tool(index: ToolSearchIndex, query: str, wanted: str) -> None:
    assert wanted in found(index, query)


@pytest.mark.parametrize(("query", "wanted"), cases({
    "browser__take_screenshot": ["screensh"],
    "gmail__send_email": ["send em"],
    "home__set_thermostat": ["thermo"],
    "maps__geocode_address": ["geoc"],
    "stripe__refund_payment": ["refund_pay"],
    "github__create_issue": ["github__create_i"],
    "github__merge_pull_request": ["mergePull"],
}))  # fmt: skip
def test_the_beginning_of_a_word_finds_the_tool(index: ToolSearchIndex, query: str, wanted: str) -> None:
    assert wanted in found(index, query)


@pytest.mark.parametrize(("query", "wanted"), cases({
    "calendar__set_color": ["event colour", "event color", "colour", "colours"],
    "shop__organize_wishlist": [
        "organise wish list", "organising the wish list", "organisation of the wish list", "organise",
    ],
    "calendar__delete_event": ["cancelled event", "canceled event", "cancel an event", "cancelling events"],
    "shop__browse_catalog": ["product catalogue", "catalogue", "catalogues"],
    "maps__center_view": ["centre the map", "centring the map", "centre"],
    "docs__summarize_document": ["summarise document", "summarising"],
}))  # fmt: skip
def test_british_and_american_spelling_find_the_same_tool(index: ToolSearchIndex, query: str, wanted: str) -> None:
    assert wanted in found(index, query)


@pytest.mark.parametrize(("query", "wanted"), cases({
    "github__create_issue": ["assignees and labels"],
    "github__merge_pull_request": ["squash", "rebase and merge", "merge_method=squash"],
    "gmail__send_email": ["bcc", "cc and bcc with attachments"],
    "home__set_thermostat": ["hvac mode", "eco mode"],
    "calendar__set_color": ["lavender"],
    "maps__get_directions": ["bicycling", "transit from origin to destination"],
    "stripe__refund_payment": ["fraudulent charge"],
    "stripe__list_subscriptions": ["past_due", "past due customers"],
    "slack__post_message": ["thread_ts"],
    "filesystem__read_file": ["latin-1", "latin1 encoding"],
    "docs__translate_text": ["target language"],
    "calendar__find_free_time": ["duration in minutes for attendees"],
    "stripe__create_invoice": ["due date", "dueDate"],
    "browser__take_screenshot": ["full page", "fullPage"],
    "weather__list_alerts": ["storm severity"],
    "github__list_issues": ["state: closed"],
    "github__create_pull_request": ["draft pull request"],
    "weather__get_forecast": ["imperial units"],
    "slack__list_channels": ["private channel"],
}))  # fmt: skip
def test_words_of_parameters_and_enum_values_find_the_tool(index: ToolSearchIndex, query: str, wanted: str) -> None:
    assert wanted in found(index, query)


@pytest.mark.parametrize(("query", "wanted"), cases({
    "gmail__send_email": ["e-mail", "send e-mail"],
    "calendar__delete_event": ["delete an appointment", "remove event"],
    "stripe__refund_payment": ["return money"],
    "filesystem__move_file": ["rename file"],
    "github__search_code": ["repo search"],
    "gitlab__run_pipeline": ["trigger CI"],
    "slack__post_message": ["chat message"],
    "home__set_thermostat": ["room temperature"],
    "weather__list_alerts": ["thunderstorm warning"],
    "docs__translate_text": ["French translation"],
}))  # fmt: skip
def test_a_synonym_beside_a_word_of_the_tool_does_no_harm(index: ToolSearchIndex, query: str, wanted: str) -> None:
    assert wanted in found(index, query)


@pytest.mark.parametrize(("query", "wanted"), cases({
    "github__create_pull_request": ["PR", "open a PR", "open PRs"],
    "gitlab__list_merge_requests": ["MR list", "list MRs"],
    "slack__post_message": ["DM someone", "post msg"],
    "filesystem__list_directory": ["list dir", "dirs"],
    "github__search_code": ["search repos"],
    "lambda__list_code_signing_configs": ["code signing cfg"],
}))  # fmt: skip
def test_a_short_form_of_words_finds_the_tool(index: ToolSearchIndex, query: str, wanted: str) -> None:
    assert wanted in found(index, query)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("send_email, create_invoice", ["gmail__send_email", "stripe__create_invoice"]),
        (
            "read_file,write_file,move_file",
            ["filesystem__read_file", "filesystem__write_file", "filesystem__move_file"],
        ),
        ("slack__post_message, gmail__send_email", ["slack__post_message", "gmail__send_email"]),
        ("read_file write_file", ["filesystem__read_file", "filesystem__write_file"]),
        ("read_file and move_file", ["filesystem__read_file", "filesystem__move_file"]),
        (
            "read_file; geocode_address; take_screenshot",
            ["filesystem__read_file", "maps__geocode_address", "browser__take_screenshot"],
        ),
        ("readFile, writeFile", ["filesystem__read_file", "filesystem__write_file"]),
        ("mcp__slack__post_message, mcp__gmail__send_email", ["slack__post_message", "gmail__send_email"]),
        ('["send_email", "create_invoice"]', ["gmail__send_email", "stripe__create_invoice"]),
        ("send_email | create_invoice", ["gmail__send_email", "stripe__create_invoice"]),
        ("send_email OR create_invoice", ["gmail__send_email", "stripe__create_invoice"]),
        ("send_email\ncreate_invoice", ["gmail__send_email", "stripe__create_invoice"]),
        (
            "send an email, take a screenshot, run a query",
            ["gmail__send_email", "browser__take_screenshot", "postgres__run_query"],
        ),
        ("select: send_email, create_invoice", ["gmail__send_email", "stripe__create_invoice"]),
        ("select:mcp__slack__post_message,functions.send_email", ["slack__post_message", "gmail__send_email"]),
        ("select:sendEmail,createInvoice", ["gmail__send_email", "stripe__create_invoice"]),
        ("select:slack.post_message", ["slack__post_message"]),
    ],
)
def test_several_names_or_needs_in_one_query_find_all_their_tools(
    index: ToolSearchIndex, query: str, wanted: list[str]
) -> None:
    assert set(wanted) <= set(found(index, query))


def test_a_name_that_two_servers_have_finds_both_first(index: ToolSearchIndex) -> None:
    assert found(index, "create_issue")[:2] == ["github__create_issue", "gitlab__create_issue"]
