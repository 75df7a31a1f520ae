"""The front page of the site: it installs as the README does, and names what else can be installed."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
FOR_CONTRIBUTORS = {"bench", "dev", "docs", "mutation"}
ALL = "all"


def test_the_first_command_is_that_of_the_readme() -> None:
    [command] = re.findall(r"```bash\n(.*)```", PAGE, re.DOTALL)

    assert command in (ROOT / "README.md").read_text(encoding="utf-8")


def test_each_extra_for_users_is_listed() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = PAGE.partition("| extra | for |")[2].partition("\n\n")[0]
    listed = {name for row in rows.splitlines() for name in re.findall(r"`([\w-]+)`", row.split("|")[1] if row else "")}

    assert listed == extras.keys() - FOR_CONTRIBUTORS - {ALL}
