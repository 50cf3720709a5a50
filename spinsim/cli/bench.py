"""``spinsim devices``, ``warm-up`` and ``bench``: available engines, kernel compilation, and rates on this machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spinsim.cli import flags
from spinsim.cli.flags import Flag, Real, Whole, check_number_of
from spinsim.cli.saying import say, say_json
from spinsim.errors import InputError
from spinsim.inputs.texts import count, wrapped

if TYPE_CHECKING:
    from spinsim.jobs.warming import Warmed
    from spinsim.settings.setting import Setting


def devices() -> None:
    """List the engines that can run here, on every rank if there are several."""
    from spinsim.parallel.ranks import name_of, why_not
    from spinsim.parallel.session import answers, others

    lines = _of_this_process()
    missing, ranks = why_not(), 1 + len(others())
    lines.append(f"mpi   {missing}" if missing else f"mpi   ready: {ranks} rank{'s' if ranks > 1 else ''}")
    say(*lines)
    there = answers([place.request(_of_this_process) for place in others()])
    for place, lines_there in zip(others(), there, strict=True):
        say(f"{place.request(name_of, place.rank)()}:", *(f"  {line}" for line in lines_there))


def _of_this_process() -> list[str]:
    import platform

    import llvmlite.binding as llvm

    from spinsim.cuda.device import names, why_not
    from spinsim.machine.memory import available_bytes, readable
    from spinsim.machine.threads import available_threads

    features = llvm.get_host_cpu_features()
    vectors = next((name for name in ("avx512f", "avx2", "avx", "neon", "sse2") if features.get(name)), "scalar")
    missing = why_not()
    return [
        f"cpu   ready: {count(available_threads(), 'thread')}, {llvm.get_host_cpu_name()}, {vectors} vectors, "
        f"{readable(available_bytes())} of memory free, {platform.system()} {platform.machine()}",
        f"cuda  {missing}" if missing else f"cuda  ready: {', '.join(names())}",
    ]


def machine(device: str, threads: int | None) -> str:
    """Name of the first GPU, or of the processor with the number of threads; ``device`` is cpu or cuda."""
    import llvmlite.binding as llvm

    from spinsim.cuda.device import names
    from spinsim.machine.threads import available_threads

    if device == "cuda":
        return names()[0]
    return f"CPU {llvm.get_host_cpu_name()}, {count(threads or available_threads(), 'thread')}"


def warm_up(
    jobs: Annotated[
        list[str] | None,
        typer.Argument(help="Jobs whose kernels are compiled: anneal, temper ...  [all]", metavar="JOB..."),
    ] = None,
    device: Annotated[str, Flag("--device", help="Device of the later runs: auto, cpu or cuda.")] = "auto",
    quiet: Annotated[bool, Flag("--quiet", help="Print nothing.")] = False,
) -> None:
    """Compile the kernels of common runs ahead of time, for container images and batch jobs.

    Later runs then compile nothing. `spinsim warm-up temper` compiles the kernels of one job only. Kernels are stored
    in the package's folder, in the user's cache if that folder is not writable, or in the folder NUMBA_CACHE_DIR. They
    work on processors of the same kind. Files that other users (except root) can write to are never used. A warm-up
    that is interrupted keeps its finished kernels, and the same command goes on.
    """
    from spinsim.jobs.warming import small_runs, warm_up
    from spinsim.machine.stored import writable_folder
    from spinsim.machine.threads import available_threads

    tasks = small_runs(jobs or None)

    def tell(job: str, model: str, words: str) -> None:
        if not quiet:
            say(f"{tasks.index((job, model)) + 1:2} of {len(tasks)}  {job:9}{model:37}{words}")

    def tell_made(warmed: Warmed) -> None:
        made = f"{count(len(warmed.kernels), 'kernel')} in {warmed.seconds:.1f} s" if warmed.kernels else "ready"
        tell(warmed.job, warmed.model, made)

    if not quiet:
        runs = f"Kernels are compiled in {count(len(tasks), 'small run')}, {available_threads()} at a time"
        say(*wrapped(runs + ("" if jobs else "; spinsim warm-up temper compiles those of temper alone")))
    began = time.perf_counter()
    try:
        all_warmed = warm_up(jobs or None, device, on_warmed=tell_made, on_begun=partial(tell, words="begun"))
    except KeyboardInterrupt:
        say("Interrupted; finished kernels are kept, and the same command goes on with the others.", err=True)
        raise
    if not quiet:
        made = sum(len(warmed.kernels) for warmed in all_warmed)
        all_of_them = f"{count(made, 'kernel')} compiled" if made else "All kernels were compiled already"
        say(f"{all_of_them}, {time.perf_counter() - began:.1f} s; they are kept in {writable_folder()}")


Repeats = Annotated[int, Whole(help="Runs of each case.")]
AsJson = Annotated[bool, Flag("--json", help="Print the rates as one JSON object.")]


def _settings(**names: str) -> Callable[[], Mapping[str, Setting]]:
    """Return a function that reads the named settings; the keyword is their table."""

    def read() -> Mapping[str, Setting]:
        from spinsim.jobs.anneal.settings import AnnealSettings
        from spinsim.jobs.temper.settings import TemperSettings
        from spinsim.settings.setting import settings_of
        from spinsim.settings.shared import RunSettings

        tables = {"run": RunSettings, "anneal": AnnealSettings, "temper": TemperSettings}
        return {name: settings_of(tables[table])[name] for table, each in names.items() for name in each.split()}

    return read


_OF_MACHINE: Final = _settings(run="device threads")
_OF_TEMPERING: Final = _settings(run="device threads rng_rounds", temper="measure_every swap_every")
_OF_ENGINE: Final = _settings(run="device threads rng_rounds")


class Table:
    """Rows of a benchmark, printed as they come, or as one JSON object at the end, with the command and the machine."""

    def __init__(self, as_json: bool, repeats: int, device: str, threads: int | None, words: str) -> None:
        from spinsim.engine import resolve_device

        check_number_of("repeats", repeats)
        self._as_json, self._repeats, self._machine = as_json, repeats, machine(resolve_device(device), threads)
        self._rows: list[dict[str, Any]] = []
        self.say(f"{self._machine}; {words}")

    def say(self, *lines: str) -> None:
        """Print lines above or below the rows, unless the output is JSON."""
        if not self._as_json:
            say(*lines)

    def row(self, line: str, **numbers: Any) -> None:
        """Add a row: the printed line, and its numbers by name."""
        self._rows.append(numbers)
        self.say(line)

    def end(self) -> None:
        """Print the JSON object, if it was requested."""
        if self._as_json:
            from spinsim import __version__

            command = " ".join(["spinsim", *(word for word in sys.argv[1:] if word != "--json")])
            about = {"command": command, "machine": self._machine, "date": date.today().isoformat()}
            say_json({**about, "spinsim": __version__, "repeats": self._repeats, "rows": self._rows})


@flags.taking(_OF_MACHINE)
def transfer(
    given: flags.Given,
    width: Annotated[str | None, Flag(help="Spins of a layer, such as 20,24.  [16,20,22; on a GPU 24,28,30]")] = None,
    repeats: Annotated[int, Whole(help="Timings of each product.")] = 5,
) -> None:
    """Time a product with T, and two levels to 1e-10 in the odd sector, with both methods.

    The bound is the time of three passes over memory at copying speed. The last columns show eigsh of SciPy (of CuPy on
    a GPU) for the same levels with the same operator, and the largest difference of ln lambda. eigsh does not search
    for levels that it missed.
    """
    from spinsim.benchmark.transfer import WIDTHS, rates
    from spinsim.engine import resolve_device

    check_number_of("repeats", repeats)
    run = flags.filled(given, _OF_MACHINE())
    where, threads = resolve_device(run["device"]), run["threads"]
    widths = WIDTHS[where] if width is None else _widths(width)
    say(f"{machine(where, threads)}; median of {repeats} timings")
    row = "{:>5}{:>13}  {:10}{:>12}{:>8}{:>10}{:>11}{:>10}{:>9}{:>7}{:>9}{:>12}".format
    products = "spins", "amplitudes", "method", "product/ms", "GB/s", "of bound", "copy GB/s"
    say(row(*products, "step/ms", "solve/s", "steps", "eigsh/s", "difference"))
    reasons: dict[str, None] = {}
    for r in rates(where, threads, widths, repeats):
        apply, bandwidth = f"{1e3 * r.apply_seconds:.4g}", f"{r.bandwidth / 1e9:.1f}"
        copy = f"{16 * r.amplitudes / r.copy_seconds / 1e9:.1f}"
        solve = f"{1e3 * r.step_seconds:.4g}", f"{r.solve_seconds:.3g}", r.steps
        peer = ("-", "-") if r.without_peer else (f"{r.peer_seconds:.3g}", f"{r.difference:.1e}")
        say(row(r.sites, r.amplitudes, r.method, apply, bandwidth, f"{r.share:.2f}", copy, *solve, *peer))
        reasons |= dict.fromkeys([r.without_peer] if r.without_peer else [])
    say(*reasons)


def _widths(text: str) -> tuple[int, ...]:
    try:
        widths = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(f"width {text!r} cannot be read: give numbers of spins with commas, such as 20,24") from error
    if not all(4 <= sites <= 40 for sites in widths):
        raise InputError(f"width {text!r} is out of range: give 4 to 40 spins")
    return widths


@flags.taking(_settings(run="replicas device threads", anneal="t_start t_stop steps sweeps"))
def solve(
    given: flags.Given,
    instances: Annotated[list[Path], typer.Argument(help="Files of problems.", metavar="INSTANCE...")],
    target: Annotated[
        float | None, Real(help="Cut or energy to be met.  [the best known of instances of the G-set and Biq Mac]")
    ] = None,
    repeats: Annotated[int, Whole(help="Whole anneals, and searches, of each instance.")] = 5,
    time_limit: Annotated[float, Real(help="Seconds after which a search gives up.")] = 60.0,
) -> None:
    """Measure success probability and time to solution of anneals, with errors, and the time of searches.

    Whole anneals give the probability p that one replica meets the target, and that at least one replica does.
    Repeated anneals meet it with probability 99 % within the time to solution. Brackets hold intervals of one
    standard error. The last lines are times of ss.anneal with the target and the settings given here, and of
    ss.temper and ss.solve with their own.
    """
    from spinsim.analysis.time_to_solution import in_words, seconds_in_words
    from spinsim.benchmark.jobs import solve_instances
    from spinsim.engine import resolve_device

    check_number_of("repeats", repeats)
    settings = {name: value for name, value in given.items() if value is not None}
    say(
        f"{machine(resolve_device(given['device'] or 'auto'), given['threads'])}; {max(2, repeats)} whole anneals, "
        f"{repeats} searches of at most {time_limit:g} s"
    )
    for solved in solve_instances(instances, target, repeats, time_limit, settings):
        one = solved.success
        say(f"{solved.name}: {count(solved.sites, 'site')}, target {solved.target:.15g}, best met {solved.best:.15g}")
        say(
            f"  {count(one.anneals, 'anneal')} of {count(one.sweeps, 'sweep')}, {count(one.replicas, 'replica')}, "
            f"{seconds_in_words(one.seconds)} "
            f"each, {solved.rate:.3g} updates/ns"
        )
        if one.of_replica is not None and one.of_anneal is not None:
            ps = (in_words(p, "{:.3g}") for p in (one.of_replica, one.of_anneal))
            say(f"  p of a replica {next(ps)}, of an anneal {next(ps)}")
        if one.tts is not None:
            say(f"  time to solution at 99 % {in_words(one.tts, seconds_in_words)}")
        ways = ("anneals", solved.searches), ("tempering", solved.temperings), ("solve", solved.portfolios)
        for how, seconds in ways:
            say(f"  {how} until it is met: {_times_in_words(seconds, time_limit)}")


def _times_in_words(seconds: list[float], time_limit: float) -> str:
    import statistics

    from spinsim.analysis.time_to_solution import seconds_in_words

    met = [one for one in seconds if one < float("inf")]
    middle = statistics.median_low(seconds)
    median = seconds_in_words(middle) if middle < float("inf") else f"more than {time_limit:g} s"
    span = f", {seconds_in_words(met[0])} to {seconds_in_words(met[-1])}" if met else ""
    return f"{len(met)} of {len(seconds)}, median {median}{span}"


@flags.taking(_OF_ENGINE)
def metropolis(
    given: flags.Given,
    repeats: Repeats = 5,
    one_lattice: Annotated[bool, Flag("--one-lattice", help="One replica of one lattice, by size.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure attempted spin updates per nanosecond of the Metropolis kernels, and the added time of measurements.

    The last column has published rates of other programs, in updates per nanosecond.
    """
    from spinsim.benchmark.sweeps import metropolis_rates

    run = flags.filled(given, _OF_ENGINE())
    table = _table(as_json, repeats, **run)
    row = "{:28}{:>8}{:>9}  {:15}{:>6}{:>12}{:>10}   {:22}{:>10}   {}".format
    head = "case", "samples", "replicas", "packing", "cores", "updates/ns", "per core"
    table.say(row(*head, "range", "measuring", "others"))
    for rate in metropolis_rates(repeats=repeats, one_lattice=one_lattice, **run):
        size = rate.case.name, rate.samples, rate.case.replicas, rate.packing, rate.cores
        rates = f"{rate.rates.median:.3f}", f"{rate.rates.median / rate.cores:.3f}", rate.rates.span
        table.row(
            row(*size, *rates, f"{100 * rate.measuring:.1f}%", rate.case.reference), case=rate.case.name,
            samples=rate.samples, replicas=rate.case.replicas, packing=rate.packing, cores=rate.cores,
            **rate.rates._asdict(), measuring=rate.measuring,
        )  # fmt: skip
    table.end()


@flags.taking(_OF_TEMPERING)
def temper(given: flags.Given, repeats: Repeats = 5, as_json: AsJson = False) -> None:
    """Measure attempted spin updates per nanosecond of parallel tempering, and their share of the rate of sweeps alone.

    Energies, magnetisations and overlaps are measured; for models of space and time also correlations at 16 times. The
    column "correlations" adds link overlaps, Fourier modes and powers within slices. The last column has published
    rates of other programs, in updates per nanosecond.
    """
    from spinsim.benchmark.sweeps import temper_rates

    run = flags.filled(given, _OF_TEMPERING())
    table = _table(as_json, repeats, **{name: run[name] for name in ("device", "threads", "rng_rounds")})
    row = "{:40}{:>8}{:>13}{:>7}  {:15}{:>12}   {:22}{:>13}{:>8}{:>14}{:>8}   {}".format
    head = "case", "samples", "temperatures", "copies", "packing", "updates/ns", "range", "sweeps alone", "share"
    table.say(row(*head, "correlations", "share", "others"))
    for rate in temper_rates(repeats=repeats, **run):
        size = rate.case.name, rate.samples, rate.case.ladder[2], rate.case.copies, rate.packing
        rates = [f"{one:.3f}" for one in (rate.rates.median, rate.raw, rate.correlations)]
        shares = [f"{100 * one / rate.raw:.1f}%" for one in (rate.rates.median, rate.correlations)]
        table.row(
            row(*size, rates[0], rate.rates.span, rates[1], shares[0], rates[2], shares[1], rate.case.reference),
            case=rate.case.name, samples=rate.samples, temperatures=rate.case.ladder[2], copies=rate.case.copies,
            packing=rate.packing, **rate.rates._asdict(), sweeps_alone=rate.raw, correlations=rate.correlations,
        )  # fmt: skip
    table.end()


@flags.taking(_OF_MACHINE)
def jobs(given: flags.Given, repeats: Repeats = 5, as_json: AsJson = False) -> None:
    """Compare whole commands with the engine they use, in attempted updates per nanosecond.

    The engine sweeps and exchanges without measuring; the command measures, analyses and writes its file. The time of
    the command is its whole duration.
    """
    from spinsim.benchmark.jobs import job_rates

    run = flags.filled(given, _OF_MACHINE())
    table = Table(as_json, repeats, **run, words=f"engine: median of {repeats} runs, command: one run")
    row = "{:34}{:>10}{:>10}{:>8}{:>9}{:>9}".format
    table.say(row("case", "engine", "command", "share", "seconds", "file/MB"))
    for rate in job_rates(repeats=repeats, **run):
        rates = f"{rate.engine:.4g}", f"{rate.command:.4g}", f"{100 * rate.share:.1f}%"
        table.row(
            row(rate.case.name, *rates, f"{rate.seconds:.1f}", f"{rate.file_bytes / 1e6:.1f}"), case=rate.case.name,
            engine=rate.engine, command=rate.command, seconds=rate.seconds, file_bytes=rate.file_bytes,
        )  # fmt: skip
    table.end()


@flags.taking(_OF_ENGINE)
def scaling(given: flags.Given, repeats: Repeats = 5, as_json: AsJson = False) -> None:
    """Measure rates on 1, 2, 4, ... devices: the GPUs of this machine, or the ranks of mpiexec.

    Rates are attempted spin updates per nanosecond; for transfer matrices, amplitudes of a product per nanosecond. In
    weak scaling each device has the work of a single one; in strong scaling the devices share it. The last column is
    the rate divided by that of ideal linear scaling.
    """
    from spinsim.benchmark.scaling import scaling_rates

    run = flags.filled(given, _OF_ENGINE())
    table = _table(as_json, repeats, **run)
    row = "{:40}{:8}{:>7}{:>12}  {:12}{:22}{:>10}{:>11}".format
    table.say(row("case", "growth", "devices", "a ns", "unit", "range", "times one", "of linear"))
    for rate in scaling_rates(repeats=repeats, **run):
        of_case, median = (rate.case.name, rate.case.growth, rate.devices), f"{rate.rates.median:.3f}"
        gains = f"{rate.gain:.3f}", f"{100 * rate.gain / rate.devices:.1f}%"
        table.row(
            row(*of_case, median, rate.case.unit, rate.rates.span, *gains), case=rate.case.name,
            growth=rate.case.growth, devices=rate.devices, unit=rate.case.unit, **rate.rates._asdict(), gain=rate.gain,
        )  # fmt: skip
    table.end()


def _table(as_json: bool, repeats: int, device: str, threads: int | None, rng_rounds: int) -> Table:
    return Table(as_json, repeats, device, threads, f"Philox of {rng_rounds} rounds; median of {repeats} runs")


def gemm(
    repeats: Annotated[int, Whole(help="Calls of each kernel.")] = 5,
    plot: Annotated[Path | None, Flag(help="Write a bar chart of the ladder, .pdf or .png.")] = None,
    overwrite: flags.Overwrite = False,
) -> None:
    """Measure the rates of the matrix products on the first GPU, and of cuBLAS.

    Bytes are the memory reads and writes of a kernel's blocks, before any cache.
    """
    from itertools import chain

    from spinsim.benchmark.gemm import SIZES, Rate, draw, ladder, tall_products, wide_products
    from spinsim.cuda.device import why_not
    from spinsim.machine.files import check_output

    check_number_of("repeats", repeats)
    if plot is not None and plot.suffix.lower() not in (".pdf", ".png"):
        raise InputError(f"{plot} is not a figure that spinsim can write: its suffix must be .pdf or .png")
    if plot is not None:
        check_output(plot, plot.suffix[1:].lower(), overwrite)
    if (reason := why_not()) is not None:
        raise InputError(f"bench gemm needs a GPU: {reason}")

    row = "{:18}{:24}{:>11}{:>9}{:>10}{:>8}{:>11}{:>7}".format

    def show(rate: Rate) -> None:
        share = "" if rate.of_peak is None or not rate.operations else f"{100 * rate.of_peak:.1f}%"
        rates = f"{1e3 * rate.seconds:.3f}", f"{rate.teraflops:.2f}", f"{100 * rate.of_library:.1f}%", share
        say(row(rate.name, rate.case, *rates, f"{rate.moved / 1e9:.1f}", f"{rate.moved / rate.seconds / 1e12:.2f}"))

    say(f"{machine('cuda', None)}; median of {repeats} calls")
    say(row("kernel", "case", "ms", "TFLOP/s", "cuBLAS", "peak", "GB", "TB/s"))
    rates = []
    for kind, sizes in SIZES.items():
        for rate in chain.from_iterable(ladder(kind, size, repeats) for size in sizes):
            show(rate)
            rates.append(rate)
    say("the column cuBLAS of copies, transpositions, tall products and both_factors: share of a copy's rate")
    for rate in chain(wide_products(repeats), tall_products(repeats)):
        show(rate)
    if plot is not None:
        draw(rates, plot, overwrite)
        say(plot)


_COMMANDS = {one.__name__: one for one in (transfer, solve, metropolis, temper, jobs, scaling, gemm)}
bench = typer.Typer(cls=flags.group_of(_COMMANDS), help="Rates on this machine.", rich_markup_mode=None)


@bench.callback()
def options() -> None:
    """Measure rates on this machine."""
