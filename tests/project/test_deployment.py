"""The parts of examples/deployment fit each other and the service, as far as that shows without a container engine."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.kit.commands import start_python
from tests.kit.postgres import PostgresServer
from toolsearch.environment import NO_SETTINGS, SECRET_KEY, STORE
from toolsearch.service.settings import ServiceSettings
from toolsearch.service.web.paths import OPEN

ROOT = Path(__file__).parents[2]
DEPLOYMENT = ROOT / "examples" / "deployment"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOYMENT / "compose.yaml").read_text("utf-8"))
BALANCER = (DEPLOYMENT / "haproxy.cfg").read_text("utf-8")
REPLICAS = [name for name in COMPOSE["services"] if name.startswith("replica")]


def instructions() -> list[tuple[str, str]]:
    """Those of the Dockerfile, in order: the word, and the rest on one line."""
    text = re.sub(r"^#.*\n", "", (DEPLOYMENT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    return [
        (word, rest)
        for word, _, rest in (each.partition(" ") for each in re.sub(r"\\\n\s*", "", text).splitlines() if each)
    ]


IMAGE = instructions()
BUILD = IMAGE[: [index for index, (word, _) in enumerate(IMAGE) if word == "FROM"][1]]
FINAL = IMAGE[len(BUILD) :]


def only(word: str) -> str:
    [rest] = [rest for each, rest in FINAL if each == word]
    return rest


def health_check() -> list[str]:
    command: list[str] = json.loads(only("HEALTHCHECK").partition("CMD ")[2])
    return command


def environment(service: str) -> dict[str, str]:
    """What compose gives a service, with an .env of the two that have no default."""
    values: Mapping[str, str] = COMPOSE["services"][service]["environment"]
    given = {"POSTGRES_PASSWORD": "secret", "TOOLSEARCH_SECRET_KEY": "k" * 43 + "="}

    def filled(found: re.Match[str]) -> str:
        name, how, rest = found.groups()
        return given.get(name) or (rest if how == ":-" else pytest.fail(f"{name}: {rest}"))

    return {name: re.sub(r"\$\{(\w+)(:-|:\?)([^}]*)\}", filled, value) for name, value in values.items()}


def test_every_variable_of_a_replica_is_one_that_the_service_knows() -> None:
    for replica in REPLICAS:
        given = environment(replica)
        settings = ServiceSettings.from_environment({name: given[name] for name in given if name not in NO_SETTINGS})

        assert settings.serve.public_url == "http://localhost:8080"
        assert settings.memory.index_bytes == 2**30
        assert given[STORE] == "postgresql://toolsearch:secret@postgres/toolsearch"
        assert given[SECRET_KEY]


def test_replicas_differ_in_nothing_but_the_folder_of_their_indexes() -> None:
    first, *others = ({**COMPOSE["services"][name], "volumes": None} for name in REPLICAS)
    volumes = [tuple(COMPOSE["services"][name]["volumes"]) for name in REPLICAS]

    assert others == [first]
    assert len(set(volumes)) == len(REPLICAS) == 2
    assert {each.partition(":")[2] for [each] in volumes} == {only("VOLUME")}


def test_no_secret_has_a_default_or_is_in_the_image() -> None:
    text = (DEPLOYMENT / "compose.yaml").read_text("utf-8")

    for name in ("POSTGRES_PASSWORD", "TOOLSEARCH_SECRET_KEY"):
        uses = re.findall(rf"\$\{{{name}(.{{2}})", text)
        assert set(uses) == {":?"}, name
    set_in_image = [rest for word, rest in IMAGE if word in ("ENV", "ARG")]
    assert [rest for rest in set_in_image if re.search("SECRET|STORE|PASSWORD|_KEY", rest)] == []


def test_the_database_is_of_the_user_and_the_name_that_the_replicas_give() -> None:
    postgres = environment("postgres")

    assert environment("replica-1")[STORE] == (
        f"postgresql://{postgres['POSTGRES_USER']}:{postgres['POSTGRES_PASSWORD']}@postgres/{postgres['POSTGRES_DB']}"
    )


def test_everything_means_the_same_port() -> None:
    command = json.loads(only("CMD"))
    bound = command[command.index("--bind") + 1]

    assert bound == f"0.0.0.0:{only('EXPOSE')}"
    assert environment("balancer") == {
        f"REPLICA_{number}": f"{name}:{only('EXPOSE')}" for number, name in enumerate(REPLICAS, 1)
    }
    assert set(environment("balancer")) == set(re.findall(r"\$\{(REPLICA_\d)\}", BALANCER))
    [published] = COMPOSE["services"]["balancer"]["ports"]
    assert published == "127.0.0.1:8080:8080"
    assert '"${BALANCER_ADDRESS-:8080}"' in BALANCER


def test_health_is_asked_where_no_key_is_needed() -> None:
    [asked] = re.findall(r"http-check send meth GET uri (\S+)", BALANCER)

    assert asked in OPEN
    assert f"'{asked}'" in health_check()[-1]


def test_nobody_gives_up_before_the_service_does() -> None:
    serve = ServiceSettings().serve
    grace_s = int(COMPOSE["services"]["replica-1"]["stop_grace_period"].removesuffix("s"))
    waits_s = int(re.findall(r"^    timeout server (\d+)s$", BALANCER, re.MULTILINE)[0])

    assert only("STOPSIGNAL") == "SIGTERM"
    assert grace_s > serve.shutdown_timeout_s
    assert waits_s > serve.request_timeout_s


def test_the_image_runs_as_a_user_of_its_own_who_owns_one_folder() -> None:
    [run] = [rest for word, rest in FINAL if word == "RUN"]
    user = only("USER").split(":")[0]

    assert int(user) > 0
    assert f"--uid {user}" in run
    assert f"--owner {user}" in run
    assert only("VOLUME") in run
    assert json.loads(only("CMD"))[:3] == ["serve", "--data", only("VOLUME")]
    assert COMPOSE["services"]["replica-1"]["read_only"] is True


def test_the_command_of_the_image_serves_from_postgresql_and_ends_at_its_signal(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """With a folder and a port of this test, and the other options and variables as they are."""
    command: list[str] = json.loads(only("CMD"))
    command[command.index(only("VOLUME"))] = str(tmp_path)
    command[command.index("0.0.0.0:8080")] = "0.0.0.0:0"
    variables = environment("replica-1") | {STORE: postgres.new_database()}
    assert json.loads(only("ENTRYPOINT")) == ["toolsearch"]

    with start_python("-m", "toolsearch", *command, **variables) as process:
        try:
            assert process.stdout is not None
            printed = [process.stdout.readline().strip() for _ in range(2)]
            assert printed[0] == "TOOLSEARCH_URL=http://localhost:8080"
            assert printed[1].startswith("TOOLSEARCH_KEY=ts_")
            [port] = {
                each.laddr.port for each in psutil.Process(process.pid).net_connections() if each.status == "LISTEN"
            }

            assert run_health_check(port) == 0
            process.send_signal(getattr(signal, only("STOPSIGNAL")))
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
    assert run_health_check(port) == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"indexes", "serving.lock"}


def run_health_check(port: int) -> int:
    program, *arguments = health_check()
    assert program == "python"
    arguments[-1] = arguments[-1].replace("8080", str(port))
    return subprocess.run([sys.executable, *arguments], capture_output=True).returncode
