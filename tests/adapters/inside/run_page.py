"""Run the blocks of Python of a page of the documentation: ``run_page.py PAGE``. Prints what each has printed.

On the page, ``model`` is the reader's own. Here it is a framework's model for tests, which searches, calls and answers.
"""

import json
import re
import sys
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path

page = Path(sys.argv[1])
blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
scripted = import_module(f"models.{page.stem.replace('-', '_')}").scripted
names = {"__name__": "__main__"}
printed = []
for block in blocks:
    names["model"] = scripted(
        [("toolSearchTool", {"query": "median of numbers", "limit": 1})],
        [("statistics__median", {"data": [3, 1, 4, 1, 5]})],
        "The median is 3.",
    )
    with redirect_stdout(StringIO()) as output:
        exec(compile(block, page.name, "exec"), names)  # noqa: S102
    printed.append(output.getvalue())
print(json.dumps(printed))
