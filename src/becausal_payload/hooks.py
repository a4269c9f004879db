"""Marks functions as pytest hooks without importing pytest: the payload stays standard library."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

Hook = TypeVar("Hook", bound=Callable[..., Any])


def hookimpl(**options: bool) -> Callable[[Hook], Hook]:
    """What `pytest.hookimpl` does: leave the options where pluggy looks for them."""

    def mark(function: Hook) -> Hook:
        function.pytest_impl = options  # type: ignore[attr-defined]
        return function

    return mark
