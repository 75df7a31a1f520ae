"""What the tests of index directories share: a few tools, all answers of an engine, and damage to a file."""

from pathlib import Path

from toolsearch import Catalog, ToolDefinition, ToolSearch

QUERIES = ("send an email", "calender", "/^list/", "select:list_events", "weather of a city")


def definition(name: str, description: str) -> ToolDefinition:
    return ToolDefinition(name, f"{description} (ours)")


def tools() -> Catalog:
    return Catalog(
        [
            definition("send_mail", "Send an email message"),
            definition("list_events", "List the events of a calendar"),
            definition("get_weather", "Get the weather of a city"),
        ]
    )


def answers(engine: ToolSearch) -> list[object]:
    return [engine.search(query, strategy=strategy) for query in QUERIES for strategy in engine.strategies]


def generation(path: Path) -> Path:
    return path / (path / "CURRENT").read_text().split()[0]


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0x55
    file.write_bytes(content)
