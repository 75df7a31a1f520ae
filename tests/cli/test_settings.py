"""Settings on the command line: what the environment and a file say, and that the options of a command win."""

from collections.abc import Callable
from pathlib import Path

import pytest

from toolsearch.catalog.index_directory import IndexDirectory
from toolsearch.cli import main
from toolsearch_indexes.encoders.static import HashingEncoder

FILE = """
[toolsearch.index]
strategy = "keyword"
index_dir = "kept"

[toolsearch.search]
limit = 2

[toolsearch.limits]
per_tool = 0
"""


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """Run a command where ``tool.toml`` has settings, and return its exit code and what it says."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tool.toml").write_text(FILE)

    def run(*arguments: str) -> tuple[int, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        return code, out + err

    return run


def found(said: str) -> int:
    return said.count("textwrap__")


def test_a_search_takes_its_strategy_and_its_limit_from_a_file(run):
    code, said = run("search", "wrap text", "--source", "textwrap", "--settings", "tool.toml", "--json")

    assert code == 0
    assert '"strategy": "keyword"' in said
    assert found(said) == 2


def test_the_environment_wins_over_the_file_and_an_option_over_both(run, monkeypatch):
    monkeypatch.setenv("TOOLSEARCH_SEARCH__LIMIT", "1")
    search = ("search", "wrap text", "--source", "textwrap", "--settings", "tool.toml", "--json")

    assert found(run(*search)[1]) == 1
    code, said = run(*search, "--limit", "3", "--strategy", "regex")

    assert (code, found(said)) == (1, 0)  # by regex, "wrap text" fits no tool
    assert '"strategy": "regex"' in said
    assert found(run(*search, "--limit", "2", "--all")[1]) == 2


def test_an_index_is_made_and_read_where_the_settings_say(run):
    assert run("index", "textwrap", "--settings", "tool.toml")[0] == 0

    assert (Path("kept") / "CURRENT").is_file()
    assert not Path(".toolsearch").exists()
    assert found(run("search", "wrap text", "--settings", "tool.toml", "--json")[1]) == 2
    assert run("show", "textwrap__wrap", "--settings", "tool.toml")[0] == 0
    assert "textwrap" in run("sources", "--settings", "tool.toml")[1]
    assert run("search", "wrap text")[0] == 2  # without the settings there is no index


def test_an_option_says_where_an_index_is_kept_and_a_source_needs_none(run):
    assert run("index", "textwrap", "--settings", "tool.toml", "--to", "there")[0] == 0
    assert run("search", "wrap", "--source", "textwrap", "--settings", "tool.toml")[0] == 0

    assert not Path("kept").exists()
    assert run("search", "wrap text", "--index", "there")[0] == 0


def test_a_call_is_made_under_the_limits_that_are_set(run):
    wrap = ("call", "textwrap__indent", '{"text": "a", "prefix": "-"}', "--source", "textwrap")

    assert run(*wrap) == (0, "-a\n")
    code, said = run(*wrap, "--settings", "tool.toml")

    assert code == 1
    assert "may be called 0 times" in said


@pytest.mark.parametrize("command", [("search", "x"), ("index", "textwrap"), ("sources",), ("tokens",), ("show", "x")])
def test_a_setting_that_does_not_exist_stops_a_command_with_the_names_that_do(run, monkeypatch, command):
    monkeypatch.setenv("TOOLSEARCH_SEARCH__LIMT", "1")

    code, said = run(*command)

    assert code == 2
    assert "TOOLSEARCH_SEARCH__LIMT; did you mean search.limit" in said


def test_a_strategy_that_does_not_exist_is_refused_and_synonyms_are_taken(run):
    search = ("search", "wrap text", "--source", "textwrap", "--json", "--strategy")

    code, said = run(*search, "bm25")
    assert code == 2
    assert "'bm25'; use one of auto, hybrid" in said

    code, said = run(*search, "lucene")
    assert code == 0
    assert '"strategy": "keyword"' in said
    assert "'lucene' is called 'keyword'" in said


def test_an_index_names_the_folder_of_its_encoder_so_that_it_is_found_from_elsewhere(run, tmp_path, monkeypatch):
    monkeypatch.setattr("toolsearch.catalog.index_opening.open_encoder", lambda _spec: HashingEncoder())
    (tmp_path / "model").mkdir()

    assert run("index", "textwrap", "--encoder", "model", "--to", "by-option")[0] == 0
    (tmp_path / "tool.toml").write_text('[toolsearch.index]\nencoder = "onnx:model"\n')
    assert run("index", "textwrap", "--settings", "tool.toml", "--to", "by-file")[0] == 0

    assert IndexDirectory(Path("by-option")).read().encoder_spec == str(tmp_path / "model")
    assert IndexDirectory(Path("by-file")).read().encoder_spec == f"onnx:{tmp_path / 'model'}"
