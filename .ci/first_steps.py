"""What a newcomer does after the README's first command: what the demo says to try next, and N blocks of Python."""

import re
import subprocess
import sys
from pathlib import Path

blocks = re.findall(r"^```python\n(.*?)^```$", Path("README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(*command: str) -> str:
    print("$", command[-1], flush=True)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    assert done.stdout, f"{command} printed nothing"
    return done.stdout


program = Path(sys.executable).parent / "toolsearch"
_, heading, following = run(str(program), "demo").partition("Try next\n")
commands = [line.strip() for line in following.splitlines() if line.startswith("    ")]
assert heading
assert len(commands) == 4
for command in commands:
    run("sh", "-c", command)
print(run(sys.executable, "-c", "".join(blocks[: int(sys.argv[1])])))
