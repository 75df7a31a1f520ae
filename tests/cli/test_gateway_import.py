"""Moving clients' servers behind the gateway: what is shown, what is written, and the way back."""

import json
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolsearch.cli import main
from toolsearch.cli.gateway_adoption import redacted
from toolsearch.cli.gateway_clients import known_clients
from toolsearch.cli.gateway_config_text import JsonText, TomlText
from toolsearch.errors import SourceError

GIT = {"command": "uvx", "args": ["mcp-server-git"]}
HUB = {"command": "npx", "args": ["hub"], "env": {"HUB_TOKEN": "${HUB_TOKEN}", "PLAIN": "s3cret-value"}}
ASKS = {"command": "npx", "args": ["${input:which}"]}


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A home folder of a Linux user, which is also the project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("shutil.which", lambda _: "/opt/bin/toolsearch")
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def project(home, monkeypatch) -> Path:
    """A project of that user, in which the command is run."""
    project = home / "work"
    project.mkdir()
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def cursor(home) -> Path:
    return put(home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"git": GIT, "hub": HUB}}, indent=4))


@pytest.fixture
def run(home, capsys) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["gateway", "import", "--home", str(home), "--config", str(home / "own.json"), *arguments])
        return code, *capsys.readouterr()

    return run


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_change_is_shown_without_secrets_and_nothing_is_written(run, home, cursor):
    before = cursor.read_bytes()
    code, out, err = run()

    assert code == 0
    assert '-  "git": {' in out
    assert '+  "toolsearch": {' in out
    assert "${HUB_TOKEN}" in out
    assert "s3cret-value" not in out + err
    assert "--write" in err
    assert cursor.read_bytes() == before
    assert not (home / "own.json").exists()


def test_the_gateway_takes_the_servers_over_as_they_are_and_the_client_keeps_one_entry(run, home, cursor):
    cursor.chmod(0o640)
    code, _, _ = run("--write")

    assert code == 0
    assert read(home / "own.json") == {"mcpServers": {"git": GIT, "hub": HUB}}
    assert stat.S_IMODE((home / "own.json").stat().st_mode) == 0o600
    assert read(cursor) == {
        "mcpServers": {
            "toolsearch": {
                "command": "/opt/bin/toolsearch",
                "args": ["gateway", "--config", str(home / "own.json")],
                "env": {"HUB_TOKEN": "${env:HUB_TOKEN}"},
            }
        }
    }
    assert stat.S_IMODE(cursor.stat().st_mode) == 0o640
    assert read(home / ".cursor" / "mcp.json.backup-1") == {"mcpServers": {"git": GIT, "hub": HUB}}
    assert run("--write")[0] == 1  # there is nothing left to take over


def test_the_same_server_of_two_clients_is_taken_once_and_another_of_that_name_stays(run, home, cursor):
    other = {"command": "uvx", "args": ["another-git"]}
    windsurf = put(
        home / ".codeium" / "windsurf" / "mcp_config.json",
        json.dumps({"mcpServers": {"hub": HUB, "git": other, "asks": ASKS}}),
    )
    _, _, err = run("--write")

    assert read(home / "own.json")["mcpServers"] == {"git": GIT, "hub": HUB}
    assert list(read(windsurf)["mcpServers"]) == ["git", "asks", "toolsearch"]
    assert "'git' stays with windsurf: the gateway has another server of this name" in err
    assert "'asks' stays with windsurf" in err


def test_undo_gives_a_client_its_servers_back_and_keeps_what_changed_since(run, home, cursor):
    run("--write")
    changed = read(cursor) | {"theme": "dark"}
    cursor.write_text(json.dumps(changed))

    assert run("--undo")[0] == 0
    assert read(cursor) == changed
    assert run("--undo", "--write")[0] == 0
    assert read(cursor) == {"mcpServers": {"git": GIT, "hub": HUB}, "theme": "dark"}
    assert run("--undo", "--write")[0] == 1


def test_codex_is_read_and_written_in_its_own_words(run, home):
    config = put(
        home / ".codex" / "config.toml",
        "# my settings\nmodel = 'gpt'\n\n[mcp_servers.git]\ncommand = 'uvx'\nargs = ['mcp-server-git']\n"
        "env_vars = ['GIT_TOKEN']\n\n[mcp_servers.git.env]\nPLAIN = '1'\n\n"
        "[mcp_servers.web]\nurl = 'https://web.example/mcp'\nbearer_token_env_var = 'WEB'\n\n"
        "[tui]\nbell = true # loud\n",
    )
    run("--write")

    assert read(home / "own.json")["mcpServers"] == {
        "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"GIT_TOKEN": "${GIT_TOKEN}", "PLAIN": "1"}},
        "web": {"url": "https://web.example/mcp", "headers": {"Authorization": "Bearer ${WEB}"}},
    }
    text = config.read_text()
    assert text.startswith("# my settings\nmodel = 'gpt'\n\n[tui]\nbell = true # loud\n")
    assert tomllib.loads(text)["mcp_servers"] == {
        "toolsearch": {
            "command": "/opt/bin/toolsearch",
            "args": ["gateway", "--config", str(home / "own.json")],
            "env_vars": ["GIT_TOKEN", "WEB"],
        }
    }
    run("--undo", "--write")
    assert set(tomllib.loads(config.read_text())["mcp_servers"]) == {"git", "web"}


def test_a_file_that_cannot_be_read_is_left_alone_and_costs_no_other(run, home, cursor):
    put(home / ".gemini" / "settings.json", "{ broken")
    code, _, err = run("--write")

    assert code == 0
    assert "of gemini-cli is left alone" in err


def test_a_client_that_is_not_known_is_refused_with_those_that_are(run):
    code, _, err = run("--from", "emacs")

    assert code == 2
    assert "claude-code" in err


def test_clients_keep_their_files_where_their_platform_has_them(tmp_path):
    found = {
        platform: {client.name: client.path for client in known_clients(tmp_path, tmp_path, platform)}
        for platform in ("linux", "darwin", "win32")
    }
    desktop = {platform: paths["claude-desktop"].parent.parent for platform, paths in found.items()}
    assert desktop == {
        "linux": tmp_path / ".config",
        "darwin": tmp_path / "Library" / "Application Support",
        "win32": tmp_path / "AppData" / "Roaming",
    }


COMMENTED = """{
  // what I use
  "inputs": [], /* none */
  "servers": {
    "git": {"command": "uvx",}, // "quoted": {
  },
  "other": "// no comment",
}
"""


def test_comments_around_the_servers_stay():
    changed = JsonText("servers").changed(COMMENTED, remove={"git"}, add={"toolsearch": {"command": "ts"}})

    assert changed == COMMENTED.replace(
        """{
    "git": {"command": "uvx",}, // "quoted": {
  }""",
        """{
    "toolsearch": {
      "command": "ts"
    }
  }""",
    )


@pytest.mark.parametrize("text", ["", "{}", '{"a": 1}', '{\r\n  "a": 1\r\n}\r\n', "// note\n{}"])
def test_a_file_without_servers_gets_a_section(text):
    changed = JsonText("mcpServers").changed(text, remove=(), add={"git": GIT})

    assert JsonText("mcpServers").servers(changed) == {"git": GIT}
    assert JsonText("mcpServers").changed(changed, remove={"git"}, add={}).count("mcpServers") == 1


def test_toml_that_names_servers_in_a_line_is_left_to_its_owner():
    with pytest.raises(SourceError, match="by hand"):
        TomlText("mcp_servers").changed("mcp_servers = { git = { command = 'uvx' } }", remove={"git"}, add={})


def test_what_looks_secret_is_not_shown():
    shown = redacted(
        {
            "a": {"command": "x", "args": ["--api-key", "k1", "--token=k2", "--port", "80", "https://u:k3@h/p?key=k4"]},
            "b": {
                "url": "https://u:k5@host/mcp?token=k6",
                "headers": {"Authorization": "Bearer k7", "X": "Bearer ${T}"},
            },
        }
    )
    assert shown["a"]["args"] == ["--api-key", "***", "--token=***", "--port", "80", "https://***@h/p?key=***"]
    assert shown["b"] == {
        "url": "https://***@host/mcp?token=***",
        "headers": {"Authorization": "***", "X": "Bearer ${T}"},
    }


def test_gemini_is_read_in_its_own_words_and_its_addresses_stay_hidden(run, home):
    gemini = put(
        home / ".gemini" / "settings.json",
        json.dumps(
            {
                "theme": "dark",
                "mcpServers": {
                    "web": {
                        "httpUrl": "https://web.example/mcp?key=s3cret-value",
                        "headers": {"X-Key": "$WEB_KEY"},
                        "timeout": 5000,
                        "trust": True,
                    },
                    "few": {"command": "few", "excludeTools": ["drop"]},
                },
            }
        ),
    )
    _, out, err = run("--write")

    web = {"httpUrl": "https://web.example/mcp?key=s3cret-value", "headers": {"X-Key": "${WEB_KEY}"}}
    assert read(home / "own.json")["mcpServers"] == {"web": web}
    left = read(gemini)
    assert list(left["mcpServers"]) == ["few", "toolsearch"]
    assert left["mcpServers"]["toolsearch"]["env"] == {"WEB_KEY": "${WEB_KEY}"}
    assert left["theme"] == "dark"
    assert "'few' stays with gemini-cli: 'excludeTools' limits its tools" in err
    assert "s3cret-value" not in out + err


VSCODE_PROJECT = """{
  // what the team uses
  "inputs": [
    {"type": "promptString", "id": "github-token", "description": "GitHub", "password": true},
  ],
  "servers": {
    "github": {
      "type": "stdio", "command": "npx", "args": ["github", "${workspaceFolder}/src"],
      "env": {"TOKEN": "${input:github-token}", "HOME_OF": "${userHome}", "TEAM": "${env:TEAM}"},
    },
    "filed": {"type": "stdio", "command": "npx", "envFile": "${workspaceFolder}/.env"},
    "asks": {"type": "stdio", "command": "npx", "args": ["${input:other}"]},
  },
}
"""


def test_the_project_of_vscode_keeps_asking_for_its_inputs_and_hands_them_on(run, home, project):
    file = put(project / ".vscode" / "mcp.json", VSCODE_PROJECT)
    _, out, err = run("--write")

    assert '"GITHUB_TOKEN": "${input:github-token}"' in out
    assert f"gateway check --config {home / 'own.json'}" in err
    assert read(home / "own.json")["mcpServers"] == {
        "github": {
            "type": "stdio",
            "command": "npx",
            "args": ["github", f"{project}/src"],
            "env": {"TOKEN": "${GITHUB_TOKEN}", "HOME_OF": str(home), "TEAM": "${env:TEAM}"},
            "cwd": str(project),
        }
    }
    text = file.read_text()
    assert text.startswith(VSCODE_PROJECT[: VSCODE_PROJECT.index('  "servers"')])
    servers = JsonText("servers").servers(text)
    assert list(servers) == ["filed", "asks", "toolsearch"]
    assert servers["toolsearch"]["env"] == {"GITHUB_TOKEN": "${input:github-token}", "TEAM": "${env:TEAM}"}
    assert "goes on asking for GITHUB_TOKEN" in err
    assert "'filed' stays with vscode-project: it takes variables from a file" in err
    assert "'asks' stays with vscode-project: ${input:other} is no input of the file" in err
    assert f"{file} is the project's" in err


def test_an_input_whose_variable_means_something_else_is_not_taken(run, home, project):
    servers = {"a": {"command": "a", "env": {"A": "${input:key}", "B": "${env:KEY}"}}}
    put(project / ".vscode" / "mcp.json", json.dumps({"inputs": [{"id": "key"}], "servers": servers}))

    assert run("--write")[0] == 1
    assert not (home / "own.json").exists()


def test_the_projects_of_cursor_and_claude_code_are_found_and_run_where_they_did(run, home, project):
    put(project / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"git": GIT, "sub": {**GIT, "cwd": "sub"}}}))
    put(project / ".mcp.json", json.dumps({"mcpServers": {"git": GIT, "web": {"url": "https://web.example/mcp"}}}))
    run("--write")

    assert read(home / "own.json")["mcpServers"] == {
        "git": {**GIT, "cwd": str(project)},
        "web": {"url": "https://web.example/mcp"},
        "sub": {**GIT, "cwd": str(project / "sub")},
    }
    assert list(read(project / ".cursor" / "mcp.json")["mcpServers"]) == ["toolsearch"]
    assert list(read(project / ".mcp.json")["mcpServers"]) == ["toolsearch"]


def test_claude_code_keeps_servers_for_itself_and_for_each_project_in_one_file(run, home, project):
    gone = str(home / "gone")
    before = {
        "numStartups": 3,
        "mcpServers": {"hub": HUB},
        "projects": {
            str(project): {"allowedTools": [], "mcpServers": {"git": GIT}},
            str(home): {"mcpServers": {"web": {"type": "http", "url": "https://web.example/mcp"}}, "history": ["x"]},
            gone: {"mcpServers": {"lost": GIT}},
            "/empty": {"mcpServers": {}},
        },
    }
    claude = put(home / ".claude.json", json.dumps(before, indent=2))
    _, out, err = run("--write")

    assert read(home / "own.json")["mcpServers"] == {
        "hub": HUB,
        "git": {**GIT, "cwd": str(project)},
        "web": {"type": "http", "url": "https://web.example/mcp"},
    }
    after = read(claude)
    assert list(after["mcpServers"]) == ["toolsearch"]
    assert [list(each["mcpServers"]) for each in after["projects"].values()] == [
        ["toolsearch"],
        ["toolsearch"],
        ["lost"],
        [],
    ]
    assert after["projects"][str(home)]["history"] == ["x"]
    assert f"(claude-code-local in {project})" in out
    assert f"'lost' stays with claude-code-local in {gone}: its project {gone} is not there" in err
    assert run("--undo", "--write")[0] == 0
    assert read(claude) == before


def test_one_client_alone_is_asked_for_by_name(run, home, project):
    claude = {"mcpServers": {"hub": HUB}, "projects": {str(project): {"mcpServers": {"git": GIT}}}}
    put(home / ".claude.json", json.dumps(claude))
    run("--from", "claude-code-local", "--write")

    assert list(read(home / "own.json")["mcpServers"]) == ["git"]


def test_a_server_that_two_clients_say_in_their_own_words_is_one(run, home):
    put(home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"a": {**GIT, "env": {"K": "${env:K}"}}}}))
    put(home / ".gemini" / "settings.json", json.dumps({"mcpServers": {"a": {**GIT, "env": {"K": "$K"}}}}))
    _, _, err = run("--write")

    assert "another server" not in err
    assert list(read(home / ".gemini" / "settings.json")["mcpServers"]) == ["toolsearch"]


def test_servers_that_differ_in_a_variable_alone_are_two(run, home):
    put(home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"a": {**GIT, "env": {"K": "${env:K}"}}}}))
    put(home / ".gemini" / "settings.json", json.dumps({"mcpServers": {"a": {**GIT, "env": {"K": "$L"}}}}))
    _, _, err = run("--write")

    assert "'a' stays with gemini-cli: the gateway has another server of this name" in err
