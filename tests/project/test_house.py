"""What grows by itself has a bound: names, settings, errors, mirrors. Whoever needs more takes some out."""

from tests.project.house import count_of_settings, error_classes, mirrors, names_to_know, public_names


def test_the_public_names_are_few() -> None:
    assert len(public_names("toolsearch")) <= 80
    assert len(names_to_know()) <= 127


def test_the_settings_are_few() -> None:
    assert count_of_settings() <= 120


def test_the_classes_of_errors_are_few() -> None:
    """One for what somebody catches by itself, or for data; for another code alone, a `Case`."""
    assert len(error_classes()) <= 40


def test_no_class_repeats_the_fields_of_another_but_one() -> None:
    """The body of a tool names what is shown of its definition, which has requests that nobody is shown."""
    assert [pair.partition(":")[0] for pair in mirrors()] == [
        "toolsearch.api.catalogs.ToolBody ~ toolsearch.tools.definition.ToolDefinition"
    ]
