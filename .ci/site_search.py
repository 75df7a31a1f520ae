"""Whether the search of a built site finds what people look for, in a real browser.

python .ci/site_search.py FOLDER
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import Page

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.kit.browser import chromium

FOUND_FIRST: Final = {  # words of a reader, and the pages of which one has to come first
    "prompt cache": ("prompt-cache",),
    "approve a tool": ("trust", "service-pages"),
    "rate limit": ("service-security",),
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def first_page(page: Page, url: str, words: str) -> str:
    """The name of the first page that is found for *words*."""
    page.goto(f"{url}?q={words.replace(' ', '+')}")
    found = page.locator("li.md-search-result__item a").first.get_attribute("href")
    return PurePosixPath(urlsplit(str(found)).path).stem


def main(site: Path) -> int:
    said: list[str] = []
    with served(site) as url, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        found = {words: first_page(page, url, words) for words in FOUND_FIRST}
    said += [f"{words!r} finds {found[words]}" for words, pages in FOUND_FIRST.items() if found[words] not in pages]
    print("\n".join(said) or f"{len(found)} searches find their pages first")
    return len(said)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
