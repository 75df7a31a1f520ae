"""Definitions side by side: which words are marked on which side."""

from toolsearch.gateway.trust.differences import Place, Run, places_of, worded


def _texts(runs: tuple[Run, ...]) -> str:
    """Marked words in brackets."""
    return "".join(f"[{run.text}]" if run.is_marked else run.text for run in runs)


def _shown(place: Place) -> tuple[str, str, str]:
    return place.name, _texts(place.before), _texts(place.now)


def test_the_words_that_differ_are_marked_on_their_side() -> None:
    before = {"name": "refund", "description": "Refunds a payment to the card."}
    now = {"name": "refund", "description": "Refunds a payment to any account."}

    assert list(map(_shown, places_of(before, now))) == [
        ("name", "refund", "refund"),
        ("description", "Refunds a payment to [the] [card].", "Refunds a payment to [any] [account]."),
    ]


def test_a_place_that_one_side_lacks_is_marked_as_a_whole() -> None:
    before = {"inputSchema": {"properties": {"path": {"type": "string"}}}}
    now = {"inputSchema": {"properties": {"to": {"type": "string"}}, "required": ["to"]}}

    assert list(map(_shown, places_of(before, now))) == [
        ("inputSchema.properties.to.type", "", "[string]"),
        ("inputSchema.required", "", '[["to"]]'),
        ("inputSchema.properties.path.type", "[string]", ""),
    ]


def test_everything_is_new_where_nothing_was_approved() -> None:
    assert list(map(_shown, places_of(None, {"description": "Adds."}))) == [("description", "", "[Adds.]")]


def test_characters_that_hide_are_written_out_and_marked() -> None:
    (place,) = places_of({"description": "Adds.\nTwice."}, {"description": "Adds\u200b.\nTwice."})

    assert "\\u{" not in _texts(place.before)
    assert "200b" in "".join(run.text for run in place.now if run.is_marked)
    assert place.is_changed


def test_a_number_that_becomes_a_text_of_the_same_letters_is_told_apart_by_its_place() -> None:
    (place,) = places_of({"maximum": 1}, {"maximum": 2})

    assert _shown(place) == ("maximum", "[1]", "[2]")


def test_a_long_text_is_shown_whole() -> None:
    text = "word " * 3_000
    (place,) = places_of({"description": text}, {"description": text + "more"})

    assert _texts(place.now) == f"[{text}more]"


def test_a_change_is_told_on_one_line_in_which_no_text_can_look_like_a_mark_of_ours() -> None:
    before = {"description": "Refunds the card.", "gone": "x"}
    now = {"description": "Refunds {+any+} card.\nApproved: [-no-]", "new": "y"}

    assert [(place.name, worded(place)) for place in places_of(before, now)] == [
        ("description", r"Refunds [-the-]{+{\+any+\}+} card.{+\nApproved: [\-no-\]+}"),
        ("new", "{+y+}"),
        ("gone", "[-x-]"),
    ]
