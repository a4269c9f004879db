"""The chapter that reproduces a failure: how often it shows, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from becausal.casework.bench import Bench
from becausal.casework.conduct import Conducted, Conductor
from becausal.casework.dossier import Dossier, dossier
from becausal.casework.observe import observe
from becausal.casework.opening import about, joinable, open_case
from becausal.casework.plan import Arm, Plan, derived_seed
from becausal.casework.request import Request, cold_condition
from becausal.casework.series import deliver, interrupted
from becausal.domain.condition import Condition
from becausal.domain.finding import Reproduction
from becausal.domain.journal import SearchAbandoned
from becausal.domain.signature import Signature
from becausal.domain.trial import Outcome, Trial, TrialKey
from becausal.inquiry.measure import needs_cold
from becausal.inquiry.reproduce import VERSION, WARM_ARMS, Reproduce, ReproduceParameters
from becausal.ports.lab import Warming
from becausal.ports.repository import Snapshot

SECONDS = 300.0
"""What an answer may take where nobody says otherwise; the first trials are run in any case."""


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """A case with a measured reproduction."""

    dossier: Dossier
    conducted: Conducted[Reproduction]
    warming: Warming
    snapshot: Snapshot

    @property
    def finding(self) -> Reproduction:
        return self.conducted.finding

    def deliver(self, bench: Bench) -> None:
        """Say that the answer was handed over; the same command then starts anew."""
        deliver(bench, self.dossier.case, self.conducted.search)


class AnotherFailure(Exception):
    """The command fails, but not with the failure of the case it was taken for."""

    def __init__(self, search: str, signature: Signature | None) -> None:
        super().__init__(search)
        self.search = search
        self.signature = signature


def reproduce(
    bench: Bench,
    request: Request,
    *,
    runs: int | None = None,
    cold_only: bool = False,
    seconds: float | None = None,
) -> Reproduced:
    """Measure the failure in the case it belongs to, opening one where none does."""
    bench.progress.begin("preparing")
    began = bench.clock.elapsed()
    condition, snapshot = cold_condition(bench, request)
    views = joinable(bench, request)
    if request.case is not None and views:
        request = _as_case(request, views[0])
    warming = _warming(bench, condition, request, cold_only)
    plan = make_plan(condition, warming, runs=runs, cold_only=cold_only, seconds=seconds)
    plan = replace(plan, spent=bench.clock.elapsed() - began)
    bench.progress.begin("reproducing")
    view, conducted = _conduct(bench, request, plan, views)
    observe(bench, view, condition, snapshot, conducted.trials)
    return Reproduced(
        dossier=dossier(bench.store, view), conducted=conducted, warming=warming, snapshot=snapshot
    )


def make_plan(
    condition: Condition,
    warming: Warming,
    *,
    runs: int | None,
    cold_only: bool,
    seconds: float | None,
) -> Plan[Reproduction]:
    """The search with its arms: fresh processes, and warm servers with different hash seeds."""
    servers = len(WARM_ARMS) if _fixed_hash_seed(condition) is None else 1
    parameters = ReproduceParameters(
        runs=runs, cold_only=cold_only, warm_possible=warming.possible, servers=servers
    )
    arms = {"cold": Arm(condition=condition, hash_seed=_fixed_hash_seed(condition))}
    if warming.possible:
        names = WARM_ARMS[:servers]
        arms |= {name: _warm_arm(condition, number) for number, name in enumerate(names)}
    return Plan(
        question="reproduce",
        version=VERSION,
        search=lambda seed: Reproduce(parameters),
        parameters={**msgspec.to_builtins(parameters), "seconds": seconds},
        arms=arms,
        complete=_complete,
        seconds=SECONDS if seconds is None and runs is None else seconds,
    )


def _complete(
    finding: Reproduction, trials: Sequence[Trial], symptom: Signature | None
) -> Reproduction:
    shown = finding.verdict in ("consistent", "intermittent")
    return msgspec.structs.replace(
        finding,
        signature=symptom if shown else None,
        cpu_seconds=round(sum(trial.cpu_seconds for trial in trials), 6),
    )


def _warm_arm(condition: Condition, number: int) -> Arm:
    key = TrialKey("warm", number, condition.id, 0)
    hash_seed = derived_seed(number, key, "hash")
    fixed = _fixed_hash_seed(condition)
    hash_seed = hash_seed if fixed is None else fixed
    environment = {**dict(condition.environment), "PYTHONHASHSEED": str(hash_seed)}
    warm = msgspec.structs.replace(
        condition, warmth="warm", environment=tuple(sorted(environment.items()))
    )
    return Arm(condition=warm, hash_seed=hash_seed)


def _fixed_hash_seed(condition: Condition) -> int | None:
    declared = dict(condition.environment).get("PYTHONHASHSEED")
    return int(declared) if declared is not None and declared.isdigit() else None


def _as_case(request: Request, view: Dossier) -> Request:
    """A named case brings its own criterion."""
    return replace(request, criterion=view.opened.criterion)


def _warming(bench: Bench, condition: Condition, request: Request, cold_only: bool) -> Warming:
    if cold_only:
        return Warming(possible=False, reason="fresh processes were asked for")
    if needs_cold(request.criterion):
        return Warming(possible=False, reason="the measure includes starting the program")
    return bench.lab.warming(_warm_arm(condition, 0).condition)


def _conduct(
    bench: Bench, request: Request, plan: Plan[Reproduction], views: list[Dossier]
) -> tuple[str, Conducted[Reproduction]]:
    """Try the likeliest case; when the failure turns out to be another, that one's case."""
    views = sorted(views, key=lambda v: not interrupted(bench, v.case, plan))
    if request.new:
        # A new case is only an old one where that very command was interrupted in it.
        views = [v for v in views if not v.findings and interrupted(bench, v.case, plan)]
    view = views[0] if views else None
    tried: set[str] = set()
    while view is not None:
        # Two failures that alternate would send each other around: the second visit stays.
        firm = request.case is not None or view.case in tried
        tried.add(view.case)
        try:
            return view.case, _in_case(bench, request, plan, view, firm)
        except AnotherFailure as other:
            abandoned = SearchAbandoned(search=other.search, why="the failure is another one")
            bench.store.append(view.case, [abandoned], at=bench.clock.now())
            view = about(views, other.signature)
    view = dossier(bench.store, open_case(bench, request))
    return view.case, _in_case(bench, request, plan, view, True)


def _in_case(
    bench: Bench,
    request: Request,
    plan: Plan[Reproduction],
    view: Dossier,
    firm: bool,
) -> Conducted[Reproduction]:
    def check(search: str, trials: Sequence[Trial]) -> None:
        seen = {trial.outcome for trial in trials}
        if Outcome.FAILED in seen or Outcome.FAILED_OTHERWISE not in seen:
            return
        other = next(t for t in trials if t.outcome is Outcome.FAILED_OTHERWISE)
        raise AnotherFailure(search, other.signature)

    conductor = Conductor(
        bench,
        view.case,
        request.criterion,
        plan,
        symptom=view.symptom,
        after_step=None if firm or view.symptom is None else check,
    )
    return conductor.conduct()
