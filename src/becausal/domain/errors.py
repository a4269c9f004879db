"""One family of errors: what happened, the offending value, what to do next, a slug."""

from __future__ import annotations

# Exit codes of every command; the contract of design.md §3.
DONE, NO, WRONG_USE, COULD_NOT_RUN, WAITING, OUT_OF_BUDGET, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


class BecausalError(Exception):
    """Raised with everything a reader needs; `slug` leads to docs/messages.md."""

    exit_code = COULD_NOT_RUN

    def __init__(self, slug: str, what: str, *, value: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.slug = slug
        self.what = what
        self.value = value
        self.hint = hint


class WrongUse(BecausalError):
    """The words of the command are wrong; nothing was run."""

    exit_code = WRONG_USE


class CouldNotRun(BecausalError):
    """Something on this machine stands in the way of running."""

    exit_code = COULD_NOT_RUN
