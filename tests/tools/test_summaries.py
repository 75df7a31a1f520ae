"""Summaries begin where a description says what its tool does, and stay one bounded line."""

from __future__ import annotations

import pytest

from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.summaries import one_line, purpose_of, summary_of


def summary(description: str, title: str = "") -> str:
    return summary_of(ToolDefinition("x", description, title=title))


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Lists keys. Sorted by name.\n\nMore.", "Lists keys. Sorted by name."),
        ("End of support notice: On May 20, 2026, AWS will end it. After that, no. Deletes a pool.", "Deletes a pool."),
        ("Fleets is no longer open to new customers. Existing customers can go on. Starts a fleet.", "Starts a fleet."),
        (
            "This is Classic documentation. For more information, see it. Permanently deletes a key.",
            "Permanently deletes a key.",
        ),
        ("Note: it is slow.\n\nFinds a book.", "Finds a book."),
        ("**Important:** read the guide first. Finds a book.", "Finds a book."),
        ("We recommend B. See A for more information. Finds a book. Cheaply.", "Finds a book. Cheaply."),
        ("This operation is not supported for directory buckets. This action filters rows.", "Filters rows."),
        ("This tool checks an address.", "Checks an address."),
        ("This operation can be used to look up a name.", "Look up a name."),
        ("This tool belongs to the travel system. Tool description: book a room", "Book a room"),
        ("[Beta](https://x.test/beta): Adds a domain.", "Adds a domain."),
        ("[Beta] Modify a pool. Returns it.", "Modify a pool. Returns it."),
        ("# Pools\n\nModify a pool. Returns it.", "Modify a pool. Returns it."),
        ("[Application Load Balancers] Modify the pool.", "[Application Load Balancers] Modify the pool."),
        ("# Search\n\n[![build](https://x.test/b.svg)](https://x.test) \U0001f50d Searches mails.", "Searches mails."),
        ("* Lifts a suspension.", "Lifts a suspension."),
        ("Warning! This will delete the vault.", "This will delete the vault."),
        ("Internal only. Abandons a backup.", "Abandons a backup."),
        ("The pool is no longer open in e.g. Rome. It was big. Drains the pool.", "Drains the pool."),
    ],
)
def test_a_summary_skips_what_does_not_say_what_the_tool_does(description: str, expected: str) -> None:
    assert summary(description) == expected


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("DEPRECATED: Looks up assignments.", "(deprecated) Looks up assignments."),
        ("Deprecated. Use ListJobs instead. Lists all jobs.", "(deprecated) Lists all jobs."),
        ("(Deprecated) Retrieves a key.", "(deprecated) Retrieves a key."),
        ("This method works, but is deprecated. Use B instead. Returns a key.", "(deprecated) Returns a key."),
        ("Deprecated: Use `drives.list` instead.", "(deprecated) Use `drives.list` instead."),
        ("**DECOMMISSIONED.** Returns a key.", "(deprecated) Returns a key."),
    ],
)
def test_a_tool_that_is_said_to_be_deprecated_stays_recognisable(description: str, expected: str) -> None:
    assert summary(description) == expected


@pytest.mark.parametrize(
    "description",
    [
        "Deprecates the domain. Nothing may be added to it.",
        "Lists the APIs that are deprecated.",
        "Notes are added to a book.",
        "This operation is used by partners to delete a source.",
        "See commits of a user. Part of a suite.",
        "Use this method to list objects.",
        "Deallocate a VM so that it is no longer billed.",
        "We recommend the other tool.",  # nothing else is said
        "Previews an agent.",
        "iPhones: list them.",
        "Important dates of a calendar.",
    ],
)
def test_what_says_what_the_tool_does_is_left_as_it_is(description: str) -> None:
    assert summary(description) == description


def test_without_a_description_the_title_is_the_summary() -> None:
    assert summary(" \n", title="Find a book") == "Find a book"
    assert summary("") == ""


def test_a_notice_that_goes_on_and_on_is_read_in_no_time_and_only_at_its_beginning() -> None:
    assert summary("Note: it is slow. " * 1_000 + "Finds a book.").startswith("Note: it is slow.")
    assert summary("a " * 500_000) == summary("a " * 2_000)
    assert summary("[![" * 100_000 + "x").startswith("[![")


def test_a_purpose_is_one_sentence_of_at_most_100_characters() -> None:
    assert purpose_of("# Books\n\nNote: beta.\n\nSells books. Open daily.") == "Sells books."
    assert len(purpose_of("books and " * 40)) <= 100


def test_a_line_holds_nothing_that_could_pass_for_another_line_or_command() -> None:
    assert one_line("a\n- b\x1b[2K\u2028c", 80) == "a - b [2K c"
    assert one_line("one two three", 9) == "one two…"
    assert one_line("onetwothree", 4) == "one…"
    assert one_line("one", 0) == ""
