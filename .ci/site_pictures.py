"""Pictures of a built site's tracks on a desktop and a telephone, and the pages that are too long, in a real browser.

python .ci/site_pictures.py SITE PICTURES
"""

import sys
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, ViewportSize
from site_search import served

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.kit.browser import chromium, sideways

SCREENS: Final[dict[str, tuple[ViewportSize, int]]] = {  # the window, and the most of its heights that a page may have
    "desktop": ({"width": 1280, "height": 800}, 5),
    "telephone": ({"width": 390, "height": 844}, 10),
}
_DOCS: Final = Path(__file__).parents[1] / "docs"


def tracks(browser: Browser, url: str) -> dict[str, str]:
    """The first page of each track, by the track's name."""
    page = browser.new_page(viewport=SCREENS["desktop"][0])
    page.goto(url)
    tabs = page.locator(".md-tabs__link").all()
    return {tab.inner_text().strip(): str(tab.evaluate("link => link.href")) for tab in tabs}


def screens_of(page: Page) -> float:
    """The height of the text in screens, without the site's head and foot."""
    height: float = page.evaluate("document.querySelector('.md-content').offsetHeight / window.innerHeight")
    return height


def main(site: Path, pictures: Path) -> int:
    pictures.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    with served(site) as url, chromium() as browser:
        firsts = tracks(browser, url)
        for device, (window, most) in SCREENS.items():
            page = browser.new_page(viewport=window)
            for track, first in firsts.items():
                page.goto(first)
                page.screenshot(path=pictures / f"{track.lower()}-{device}.png")
            for path in sorted(_DOCS.rglob("*.md")):
                name = path.relative_to(_DOCS).with_suffix("").as_posix()
                page.goto(url if name == "index" else f"{url}{name}/")
                screens = screens_of(page)
                print(f"{device}: {name} {screens:.1f}")
                wrong += [f"{device}: {name} has {screens:.1f} screens, at most {most}"] if screens > most else []
                wrong += [f"{device}: {name} moves sideways"] if sideways(page) else []
    print("\n".join(wrong))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
