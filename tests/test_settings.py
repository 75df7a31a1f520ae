"""Settings: where they come from, what wins, what is refused, and that each of them is documented."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from toolsearch.calling.limits import CallLimits
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadSettingError
from toolsearch.service.settings import ServiceSettings
from toolsearch.sessions.session_eviction import LruEvictionStrategy
from toolsearch.settings import IndexSettings, Settings
from toolsearch.telemetry import Telemetry


def test_nothing_given_gives_the_defaults_of_the_reference_design():
    settings = Settings.from_environment({})

    assert settings == Settings()
    assert settings.advisor.enabled is False
    assert settings.eviction.max_sessions == 1_000
    assert settings.eviction.ttl_s is None
    assert (settings.limits.per_tool, settings.limits.total) == (40, 150)
    assert settings.telemetry.capture_content is False


def test_the_environment_is_read_by_section_and_name():
    settings = Settings.from_environment(
        {
            "PATH": "/bin",
            "TOOLSEARCH_ADVISOR__ENABLED": "true",
            "TOOLSEARCH_INDEX__STRATEGY": "regex",
            "TOOLSEARCH_EVICTION__TTL_S": "1800",
            "toolsearch_search__limit": "3",
        }
    )

    assert settings.advisor.enabled is True
    assert settings.index.strategy == "regex"
    assert settings.eviction.ttl_s == 1800.0
    assert settings.search.limit == 3


def test_the_environment_beats_the_file(tmp_path):
    file = tmp_path / "toolsearch.toml"
    file.write_text("[other]\nx = 1\n[toolsearch.limits]\nper_tool = 7\ntotal = 8\n")

    settings = Settings.from_environment({"TOOLSEARCH_LIMITS__TOTAL": "9"}, file)

    assert (settings.limits.per_tool, settings.limits.total) == (7, 9)


def test_none_lifts_a_bound_wherever_it_is_written(tmp_path):
    file = tmp_path / "toolsearch.toml"
    file.write_text('[toolsearch.limits]\ntotal = "none"\n[toolsearch.limits.per_tool_overrides]\nget_time = "none"\n')

    settings = Settings.from_environment({"TOOLSEARCH_LIMITS__PER_TOOL": "None"}, file)

    assert (settings.limits.per_tool, settings.limits.total) == (None, None)
    assert settings.limits.per_tool_overrides == {"get_time": None}


def test_an_empty_text_is_not_none():
    assert Settings.from_environment({"TOOLSEARCH_ADVISOR__SYSTEM_SUFFIX": ""}).advisor.system_suffix == ""


def test_the_limit_of_one_tool_is_named_as_the_tool_is():
    settings = Settings.from_environment(
        {
            "TOOLSEARCH_LIMITS__PER_TOOL_OVERRIDES": '{"git__log": 1, "getTime": 2}',
            "TOOLSEARCH_LIMITS__PER_TOOL_OVERRIDES__git__log": "5",
        }
    )

    assert settings.limits.per_tool_overrides == {"git__log": 5, "getTime": 2}


@pytest.mark.parametrize("text", ["a, b", '["a", "b"]'])
def test_a_list_is_separated_by_commas_or_json(text):
    files = Settings.from_environment({"TOOLSEARCH_INDEX__REQUESTS_FILES": text}).index.requests_files

    assert files == (Path("a"), Path("b"))


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("TOOLSEARCH_LIMITS__PER_TOL", "limits.per_tool"),
        ("TOOLSEARCH_SEARCH_LIMIT", "search.limit"),
        ("TOOLSEARCH_ADVISER__ENABLED", "advisor.enabled"),
    ],
)
def test_an_unknown_name_is_an_error_that_lists_those_that_are_near(variable, near):
    with pytest.raises(BadSettingError) as caught:
        Settings.from_environment({variable: "1"})

    message = str(caught.value)
    assert f"there is no setting {variable}; did you mean {near}" in message
    assert sum(row.name in message for row in Settings.documented()) <= 3


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("TOOLSEARCH_EVICTION__QQQQQQQQ", "there are eviction.max_sessions, eviction.ttl_s"),
        ("TOOLSEARCH_XYZ", "the sections are index, search, advisor, eviction, budget, "),
    ],
)
def test_where_no_name_is_near_the_section_is_listed_or_the_sections(variable, told):
    with pytest.raises(BadSettingError) as caught:
        Settings.from_environment({variable: "1"})

    message = str(caught.value)
    assert message.startswith(f"there is no setting {variable}; {told}")
    assert "budget.max_tools" not in message


def test_a_file_whose_sections_are_not_in_the_table_is_refused(tmp_path):
    file = tmp_path / "toolsearch.toml"
    file.write_text("[search]\nlimit = 3\n")

    with pytest.raises(BadSettingError, match=r"has no settings: write \[toolsearch\.search\]"):
        Settings.from_environment({}, file)


def test_an_empty_folder_name_is_refused():
    with pytest.raises(BadSettingError, match=r"TOOLSEARCH_INDEX__INDEX_DIR cannot be '': it is empty"):
        Settings.from_environment({"TOOLSEARCH_INDEX__INDEX_DIR": ""})


def test_an_unknown_name_in_the_file_names_the_file(tmp_path):
    file = tmp_path / "toolsearch.toml"
    file.write_text("[toolsearch]\nlimit = 3\n[toolsearch.budget]\nmax_tols = 3\n")

    with pytest.raises(BadSettingError) as caught:
        Settings.from_environment({}, file)

    assert "no setting limit in" in str(caught.value)
    assert f"budget.max_tols in {file}; did you mean budget.max_tools" in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "text", "problem"),
    [
        ("TOOLSEARCH_INDEX__STRATEGY", "bm25", "use one of auto, hybrid, keyword, semantic, regex"),
        ("TOOLSEARCH_SEARCH__EXPOSURE", "magic", "'auto', 'messages', 'deferred', 'fixed' or 'append'"),
        ("TOOLSEARCH_LIMITS__PER_TOOL", "-1", "greater than or equal to 0"),
        ("TOOLSEARCH_SEARCH__LIMIT", "0", "greater than or equal to 1"),
        ("TOOLSEARCH_SEARCH__LIMIT", "none", "valid integer"),
        ("TOOLSEARCH_EVICTION__TTL_S", "inf", "finite"),
        ("TOOLSEARCH_ADVISOR__ENABLED", "maybe", "boolean"),
        ("TOOLSEARCH_LIMITS__PER_TOOL_OVERRIDES", "{", "not JSON"),
        ("TOOLSEARCH_LIMITS__PER_TOOL_OVERRIDES__git__log", "many", "valid integer"),
    ],
)
def test_a_value_that_cannot_be_used_is_an_error_that_names_it_and_says_what_can(variable, text, problem):
    with pytest.raises(BadSettingError) as caught:
        Settings.from_environment({variable: text})

    assert str(caught.value).startswith(variable)
    assert problem in str(caught.value)


def test_every_problem_is_told_at_once():
    with pytest.raises(BadSettingError) as caught:
        Settings.from_environment(
            {"TOOLSEARCH_X__Y": "1", "TOOLSEARCH_SEARCH__LIMIT": "0", "TOOLSEARCH_BUDGET__TTL_S": "0"}
        )

    for name in ("TOOLSEARCH_X__Y", "TOOLSEARCH_SEARCH__LIMIT", "TOOLSEARCH_BUDGET__TTL_S"):
        assert name in str(caught.value)


@pytest.mark.parametrize("content", [None, b"= 1", b"\xff", b"toolsearch = 1"])
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path, content):
    file = tmp_path / "settings.toml"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(BadSettingError, match=r"settings\.toml"):
        Settings.from_environment({}, file)


def test_settings_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Settings().index = IndexSettings()
    with pytest.raises(ValueError, match="frozen"):
        Settings().index.strategy = "regex"
    with pytest.raises(FrozenInstanceError):
        Settings().search.limit = 3


@pytest.mark.parametrize("given", [{"lowWater": 1}, {"low_water": 1}])
def test_an_option_without_a_description_is_for_code_alone(given: dict[str, object]) -> None:
    assert Settings(budget=Budget(low_water=1)).budget.low_water == 1
    with pytest.raises(BadSettingError, match=r"there is no setting TOOLSEARCH_BUDGET__LOW_WATER"):
        Settings.from_environment({"TOOLSEARCH_BUDGET__LOW_WATER": "1"})
    with pytest.raises(ValueError, match="there is no such setting"):
        Settings.model_validate({"budget": given})


def test_every_setting_is_documented_with_its_values_and_its_default():
    rows = {row.name: row for row in Settings.documented()}

    assert all(row.description and row.values for row in rows.values())
    assert rows["limits.per_tool"].variable == "TOOLSEARCH_LIMITS__PER_TOOL"
    assert rows["limits.per_tool"].values == "whole number or none"
    assert rows["limits.per_tool"].default == "40"
    assert rows["limits.per_tool_overrides"].values == "table of whole number or none"
    assert rows["search.exposure"].values == "auto, messages, deferred, fixed, append"
    assert rows["advisor.enabled"].default == "false"
    assert rows["eviction.ttl_s"].default == "none"


def test_what_is_documented_as_a_default_is_taken_as_a_value():
    documented = {
        row.variable: row.default for row in Settings.documented() if row.values != "table of whole number or none"
    }

    assert Settings.from_environment(documented) == Settings()


def test_a_setting_that_is_given_in_two_spellings_is_refused():
    with pytest.raises(BadSettingError, match="LIMITS__TOTAL and TOOLSEARCH_limits__total are the same setting"):
        Settings.from_environment({"TOOLSEARCH_LIMITS__TOTAL": "1", "TOOLSEARCH_limits__total": "2"})


def test_in_a_pyproject_file_the_settings_are_below_tool(tmp_path):
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\nname = "x"\n[tool.toolsearch.search]\nlimit = 3\n[toolsearch.search]\nlimit = 4\n')
    bare = tmp_path / "elsewhere" / "pyproject.toml"
    bare.parent.mkdir()
    bare.write_text('[project]\nname = "x"\n')

    assert Settings.from_environment({}, file).search.limit == 3
    assert Settings.from_environment({}, bare) == Settings()


def test_overrides_win_over_the_environment_and_one_that_is_none_changes_nothing():
    overrides = {"search.limit": 7, "index.strategy": None}

    settings = Settings.from_environment({"TOOLSEARCH_SEARCH__LIMIT": "3"}, overrides=overrides)

    assert (settings.search.limit, settings.index.strategy) == (7, "auto")


def test_a_time_is_a_duration_wherever_it_is_written(tmp_path):
    file = tmp_path / "toolsearch.toml"
    file.write_text('[toolsearch.eviction]\nttl_s = "1h30m"\n[toolsearch.budget]\nttl_s = 90\n')

    settings = Settings.from_environment({"TOOLSEARCH_CALLING__TIMEOUT_S": "500ms"}, file)

    assert (settings.eviction.ttl_s, settings.budget.ttl_s, settings.calling.timeout_s) == (5_400, 90, 0.5)


@pytest.mark.parametrize(("synonym", "strategy"), [("lucene", "keyword"), ("vector", "semantic")])
def test_a_strategy_may_have_the_name_that_other_tool_indexes_give_it_which_is_logged(synonym, strategy, caplog):
    settings = Settings.from_environment({"TOOLSEARCH_INDEX__STRATEGY": synonym})

    assert settings.index.strategy == strategy
    assert f"the strategy '{synonym}' is called '{strategy}' here" in caplog.text


def test_limits_that_users_name_come_from_the_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[toolsearch.rates.tools.mail]\ntools = ["mail__*"]\nper_minute = 5\n', "utf-8")
    environment = {"TOOLSEARCH_RATES__TOOLS__MAIL__AT_ONCE": "2", "TOOLSEARCH_RATES__TOOLS__ALL__PER_MINUTE": "90"}

    rates = ServiceSettings.from_environment(environment, file).rates.tools

    assert (rates["mail"].tools, rates["mail"].per_minute, rates["mail"].at_once) == (("mail__*",), 5, 2)
    assert rates["all"].per_minute == 90


@pytest.mark.parametrize(
    ("variable", "text", "problem"),
    [
        ("TOOLSEARCH_RATES__TOOLS__MAIL__PER_HOUR", "5", "there is no setting TOOLSEARCH_RATES__TOOLS__MAIL__PER_HOUR"),
        ("TOOLSEARCH_RATES__TOOLS__MAIL", "5", "there is no setting TOOLSEARCH_RATES__TOOLS__MAIL"),
        ("TOOLSEARCH_RATES__TOOLS__MAIL__PER_MINUTE", "many", "TOOLSEARCH_RATES__TOOLS__MAIL__PER_MINUTE cannot be"),
        ("TOOLSEARCH_RATES__TOOLS", "5", "TOOLSEARCH_RATES__TOOLS cannot be 5"),
    ],
)
def test_a_limit_that_users_name_is_checked_as_any_setting(variable: str, text: str, problem: str) -> None:
    with pytest.raises(BadSettingError, match=problem):
        ServiceSettings.from_environment({variable: text})


def test_the_token_of_the_gateway_command_is_no_setting():
    assert Settings.from_environment({"TOOLSEARCH_GATEWAY_TOKEN": "secret"}) == Settings()


@pytest.mark.parametrize(
    ("section", "made"),
    [
        ("index", ToolSearch),
        ("advisor", ToolSearchAdvisor),
        ("eviction", LruEvictionStrategy),
        ("calling", ToolCallingManager),
        ("telemetry", Telemetry),
    ],
)
def test_a_setting_has_the_default_of_the_parameter_of_that_name(section: str, made: type[Any]):
    parameters = inspect.signature(made).parameters
    settings = getattr(Settings(), section)
    shared = {name: getattr(settings, name) for name in parameters if hasattr(settings, name)}
    shared.pop("system_suffix", None)  # None in settings, as no text can say "the default text"

    assert shared
    assert {name: parameters[name].default for name in shared} == shared


def test_options_and_settings_of_one_thing_are_one_object():
    settings = Settings.from_environment({"TOOLSEARCH_BUDGET__MAX_TOOLS": "3", "TOOLSEARCH_LIMITS__TOTAL": "9"})

    assert settings.budget == Budget(max_tools=3)
    assert settings.limits == CallLimits(total=9)
    assert settings.pass_through == PassThrough()
