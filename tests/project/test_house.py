"""What grows by itself has a bound: public names and settings. Whoever needs more takes something out, or says why."""

from tests.project.house import count_of_settings, names_to_know, public_names


def test_the_public_names_are_few() -> None:
    assert len(public_names("toolsearch")) <= 80
    assert len(names_to_know()) <= 127


def test_the_settings_are_few() -> None:
    assert count_of_settings() <= 105
