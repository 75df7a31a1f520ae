"""What every command and group of commands has beside what typer gives it: help, and what is done about slips."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class CommandLine(typer.Typer):
    """A group of commands; ``help COMMAND`` means ``COMMAND --help``, and an option whose value is empty is refused."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, **options)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """As typer's own, which builds every command again and sets a hook for tracebacks that nobody sees here."""
        return self._built(*arguments, **options)

    @cached_property
    def _built(self) -> Any:
        return typer.main.get_command(self)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        return super().command(name, cls=_Command, **options)


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _as_shown(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _refuse_empty_values(self, ctx, args)
        return super().parse_args(ctx, args)


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _as_shown(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        elif args == ["version"] and any("--version" in each.opts for each in self.get_params(ctx)):
            args = ["--version"]
        _refuse_empty_values(self, ctx, args)
        return super().parse_args(ctx, args)


def _as_shown(parameters: list[Any]) -> list[Any]:
    """Flags take no value, so that help names no type of it."""
    for each in parameters:
        if getattr(each, "is_flag", False) or getattr(each, "count", False):
            each.metavar = ""
    return parameters


def _refuse_empty_values(command: Any, context: Any, arguments: list[str]) -> None:
    """``--to ''`` would mean the working directory; a shell's variable that is not set gives it."""
    given, _, _ = command.make_parser(context).parse_args(args=list(arguments))
    for each in command.get_params(context):
        value = given.get(each.name)
        if each.param_type_name == "option" and (value == "" or (isinstance(value, list) and "" in value)):
            raise typer.BadParameter("it is empty; give a value, or leave the option out", ctx=context, param=each)
