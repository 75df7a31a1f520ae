"""What is kept of a server's listing for the next start."""

from pathlib import Path

from tests.kit.skills import skill_entry
from toolsearch.storage.files import ListingFiles
from toolsearch.upstreams.config import StdioServer
from toolsearch.upstreams.contents import read_contents
from toolsearch.upstreams.interface import Listing
from toolsearch.upstreams.listing import ListingStore


def store(folder: Path) -> ListingStore:
    return ListingStore(StdioServer("shop", "serve"), ListingFiles(folder))


def test_skills_prompts_and_resources_are_kept_as_the_server_sent_them(tmp_path):
    listing = Listing(
        "shop",
        (),
        prompts=({"name": "ask", "arguments": [{"name": "topic"}]},),
        resources=({"uri": "docs://all", "name": "all", "mimeType": "inode/directory"},),
        resource_templates=({"uriTemplate": "file:///{name}", "name": "file"},),
        skills=(skill_entry("refunds", {"rules.md": b"Rules."}),),
        reads_directories=True,
    )
    store(tmp_path).save(listing, is_old=False)

    loaded = store(tmp_path).load()

    assert loaded is not None
    kept, is_old = loaded
    assert not is_old
    assert read_contents(kept) == read_contents(listing)
    assert [entry.name for entry in read_contents(kept)[0]] == ["shop__refunds", "shop__ask", "shop__all", "shop__file"]
