"""Where a called name may be found: attached tools, and resolvers if a setting lets them."""

import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import pytest

from toolsearch.calling import resolvers
from toolsearch.calling.resolvers import (
    AttachedTools,
    DelegatingToolCallbackResolver,
    ImportPathResolver,
    StaticToolCallbackResolver,
)
from toolsearch.errors import BadToolError, DuplicateToolError, UnknownToolError
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.function_tools import tool, tool_from_function

ADD = Tool(ToolDefinition("add"), source="calc.json")
SUBTRACT = Tool(ToolDefinition("subtract"), source="calc.json")
OTHER_ADD = Tool(ToolDefinition("add"), source="other.json")


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module that can be imported by the name ``shop``."""
    module = ModuleType("shop")

    def buy(item: str) -> str:
        """Buy something."""
        return item

    @tool(name="give_back", return_direct=True)
    def refund(item: str) -> str:
        """Give it back."""
        return item

    vars(module).update(buy=buy, refund=refund, made=ADD, number=3)
    monkeypatch.setitem(sys.modules, "shop", module)
    return module


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, shop: ModuleType) -> list[str]:
    """Entry points that an installed package offers; the list says which groups were asked for."""
    asked: list[str] = []

    def entry_points(*, group: str) -> EntryPoints:
        asked.append(group)
        return EntryPoints([EntryPoint("purchase", "shop:buy", group), EntryPoint("plus", "shop:made", group)])

    monkeypatch.setattr(resolvers, "entry_points", entry_points)
    return asked


# Resolvers


def test_a_static_resolver_knows_its_tools_by_exact_name():
    resolver = StaticToolCallbackResolver([ADD, SUBTRACT])

    assert resolver.resolve("subtract") is SUBTRACT
    assert resolver.resolve("Subtract") is None


def test_two_tools_of_one_name_are_refused_naming_both_sources():
    with pytest.raises(
        DuplicateToolError, match=r"two tools are named 'add': one from calc\.json, one from other\.json"
    ):
        StaticToolCallbackResolver([ADD, OTHER_ADD])


def test_of_several_resolvers_the_first_that_knows_the_name_answers():
    resolver = DelegatingToolCallbackResolver(
        [StaticToolCallbackResolver([ADD]), StaticToolCallbackResolver([OTHER_ADD, SUBTRACT])]
    )

    assert resolver.resolve("add") is ADD
    assert resolver.resolve("subtract") is SUBTRACT
    assert resolver.resolve("divide") is None


def test_a_listed_import_path_gives_the_function_as_a_tool_with_its_own_name(shop: ModuleType):
    resolver = ImportPathResolver(["shop:buy", "shop:refund", "shop:made"], group=None)

    buy, refund = resolver.resolve("shop:buy"), resolver.resolve("shop:refund")
    assert buy is not None
    assert refund is not None
    assert (buy.name, buy.definition.description) == ("buy", "Buy something.")
    assert (refund.name, refund.metadata.return_direct) == ("give_back", True)
    assert resolver.resolve("shop:made") is ADD
    assert resolver.resolve("shop:buy") is buy


def test_a_path_that_is_not_listed_is_never_imported():
    resolver = ImportPathResolver(["json:dumps"], group=None)

    assert resolver.resolve("os:system") is None
    assert resolver.resolve("antigravity:anything") is None
    assert "antigravity" not in sys.modules


def test_entry_points_of_installed_packages_are_tools_under_the_names_they_are_offered_by(offered: list[str]):
    resolver = ImportPathResolver()
    assert offered == []  # nothing is read before it is needed

    purchase, plus = resolver.resolve("purchase"), resolver.resolve("plus")

    assert purchase is not None
    assert plus is not None
    assert (purchase.name, purchase.definition.description) == ("purchase", "Buy something.")
    assert (plus.name, plus.source) == ("plus", "calc.json")
    assert resolver.resolve("buy") is None
    assert offered == ["toolsearch.tools"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("no_such_module_here:f", "'no_such_module_here:f' cannot be imported: No module named"),
        ("shop:nothing", "'shop:nothing' cannot be imported"),
        ("shop:number", "'shop:number' is a int, neither a Tool nor a function"),
    ],
)
def test_a_listed_path_with_no_tool_at_its_end_is_an_error_that_says_so(shop: ModuleType, path: str, told: str):
    with pytest.raises(BadToolError, match=told):
        ImportPathResolver([path], group=None).resolve(path)


@pytest.mark.parametrize("path", ["shop", "shop.buy", ":buy", "shop:"])
def test_what_is_no_import_path_is_refused_at_once(path: str):
    with pytest.raises(BadToolError, match=r"write it as 'package\.module:function'"):
        ImportPathResolver([path])


# Attached tools


def test_attached_tools_are_found_by_name_and_listed_in_the_order_given():
    attached = AttachedTools([SUBTRACT, ADD, SUBTRACT])

    assert attached.resolve("add") is ADD
    assert [definition.name for definition in attached.definitions] == ["subtract", "add"]


def test_a_name_that_is_not_attached_is_unknown_and_near_names_are_told():
    with pytest.raises(UnknownToolError) as raised:
        AttachedTools([ADD, SUBTRACT]).resolve("substract")

    assert raised.value.near == ("subtract",)


def test_a_tool_that_is_not_attached_cannot_be_called_even_if_a_resolver_knows_it():
    with pytest.raises(UnknownToolError):
        AttachedTools([ADD], StaticToolCallbackResolver([SUBTRACT])).resolve("subtract")


def test_a_setting_admits_the_resolver_after_the_attached_tools():
    resolver = StaticToolCallbackResolver([OTHER_ADD, SUBTRACT])
    attached = AttachedTools([ADD], resolver, fallback=True)

    assert attached.resolve("add") is ADD
    assert attached.resolve("subtract") is SUBTRACT
    with pytest.raises(UnknownToolError):
        attached.resolve("divide")


def test_two_attached_tools_of_one_name_are_refused():
    with pytest.raises(DuplicateToolError):
        AttachedTools([ADD, OTHER_ADD])


def test_a_decorated_function_attached_twice_is_one_tool():
    @tool
    def now() -> str:
        return "noon"

    assert len(AttachedTools([tool_from_function(now), tool_from_function(now)]).definitions) == 1
