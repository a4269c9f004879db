"""Options that do mischief when one process serves many trials: switched off, and said."""

from __future__ import annotations

from typing import Any, Generator, List, Tuple

from becausal_payload.hooks import hookimpl

# Option, value that switches it off, and what to say. The value is compared with the present one.
_OFF: Tuple[Tuple[str, Any, str], ...] = (
    ("cov_source", [], "--cov is off: coverage measures one process, not many trials"),
    ("numprocesses", None, "-n is off: each trial has one process"),
    ("dist", "no", ""),
    ("tx", [], ""),
    ("forked", False, "--forked is off: each trial is forked already"),
    ("reruns", None, "--reruns is off: a second try would hide the failure"),
    ("force_flaky", False, "--force-flaky is off: a second try would hide the failure"),
    ("lf", False, "--lf is off: a trial does not depend on the last run"),
    ("failedfirst", False, "--ff is off: a trial does not depend on the last run"),
    ("newfirst", False, "--nf is off: a trial does not depend on the last run"),
    ("stepwise", False, "--sw is off: a trial does not depend on the last run"),
    ("stepwise_skip", False, ""),
    ("stepwise_reset", False, ""),
    ("count", 1, "--count is off: the trials are the repeats"),
    ("flake_finder_enable", False, "--flake-finder is off: the trials are the repeats"),
    ("xmlpath", None, "--junitxml is off: trials would overwrite each other's file"),
    ("basetemp", None, "--basetemp is off: each trial has its own"),
)
_NOT_A_RUN = (
    "collectonly", "showfixtures", "show_fixtures_per_test", "markers", "version", "help",
    "cacheshow", "cacheclear", "setuponly", "setupplan", "looponfail",
)  # fmt: skip
_WAITS = ("usepdb", "trace")


class Neutraliser:
    """A pytest plugin that switches options off: early for plugins that act on them at once."""

    def __init__(self) -> None:
        self.notes: List[str] = []
        self.collected: List[Any] = []
        """Items as they were found, before any plugin chose or shuffled them."""

    def pytest_itemcollected(self, item: Any) -> None:
        self.collected.append(item)

    @hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: Any) -> Generator[None, None, None]:
        self.switch_off(early_config.known_args_namespace)
        yield

    def switch_off(self, options: Any) -> None:
        for name, neutral, note in _OFF:
            present = getattr(options, name, neutral)
            if present != neutral and (present or neutral):
                setattr(options, name, neutral)
                if note and note not in self.notes:
                    self.notes.append(note)


def unfit(options: Any) -> str:
    """Why a command with these options is no run that could be served; empty when it is one."""
    for name in _NOT_A_RUN:
        if getattr(options, name, None):
            return "the command asks pytest for something else than a run (%s)" % name
    for name in _WAITS:
        if getattr(options, name, None):
            return "the command waits for a person (--%s)" % name.replace("use", "")
    return ""


def shuffles(options: Any) -> bool:
    """Whether pytest-randomly puts the tests in an order of its own."""
    return bool(getattr(options, "randomly_reorganize", False)) and hasattr(
        options, "randomly_seed"
    )


def order_is_fixed_at_start(options: Any) -> bool:
    """Whether pytest-random-order shuffles, which it can do only once."""
    return getattr(options, "random_order_bucket", None) not in (None, "none") or bool(
        getattr(options, "random_order", False)
    )


def forget_cache(config: Any) -> None:
    """No trial reads or writes what the last run left in the cache."""
    for name in ("lfplugin", "nfplugin", "stepwiseplugin"):
        plugin = config.pluginmanager.getplugin(name)
        if plugin is not None:
            config.pluginmanager.unregister(plugin)
