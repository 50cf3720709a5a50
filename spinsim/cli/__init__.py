"""The ``spinsim`` command: parsing and printing, no physics. Each command imports the modules it needs when it runs."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import warnings
from typing import Annotated, Final

import typer

from spinsim.cli.analyze import analyze, check, merge, show
from spinsim.cli.bench import bench, devices, warm_up
from spinsim.cli.campaign import campaign
from spinsim.cli.flags import group_of
from spinsim.cli.plot import plot, view
from spinsim.cli.running import command_of, resume
from spinsim.cli.saying import open_streams, refuse, usage_sentence
from spinsim.errors import InputError, on_command_line
from spinsim.jobs import all_jobs
from spinsim.parallel import launched

# click's ClickException, which newer versions of typer ship inside themselves
UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]

_MANY_OBJECTS = 200_000  # allocations before the first garbage collection; loading modules leaves no garbage
_SOON = "20"  # idle OpenBLAS threads sleep after 2^20 cycles; by default they spin for 2^28

_COMMANDS = {job.name: command_of(job) for job in all_jobs()}
_COMMANDS |= {"resume": resume, "show": show, "analyze": analyze, "plot": plot, "view": view, "merge": merge}
_COMMANDS |= {"check": check, "campaign": campaign, "devices": devices, "warm-up": warm_up}
_HELP: Final = {"help_option_names": ["-h", "--help"]}  # of all commands
app = typer.Typer(
    cls=group_of(_COMMANDS), context_settings=_HELP, pretty_exceptions_enable=False, rich_markup_mode=None
)
app.add_typer(bench, name="bench")


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("-V", "--version", help="Print the version and leave.")] = False,
) -> None:
    """Exact, reproducible Monte Carlo of Ising models and spin glasses."""
    if version:
        from spinsim import __version__

        typer.echo(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line. Status: 0 done, 2 bad input (one sentence), 3 target not met, 130 stopped by a signal."""
    open_streams()
    os.environ.pop("MPLBACKEND", None)  # figures go to files, and Matplotlib refuses unknown backends
    with on_command_line():
        try:
            how = launched()
            if how is None:
                status = _status()
            else:
                from spinsim.parallel.session import joined

                with joined(how) as is_first:
                    status = _status() if is_first else 0
        except InputError as error:
            status = refuse(error)
    sys.exit(status)


def program() -> None:
    """Run the command line as a separate process, which exits without the slow clean-up of modules."""
    gc.set_threshold(_MANY_OBJECTS)
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", _SOON)
    try:
        main()
    except SystemExit as end:
        if launched() is not None:  # MPI must be shut down too
            raise
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(int(end.code or 0))


def _status() -> int:
    """Run the command, as the only process or as the first of several, and return its exit status."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # from NumPy, if a damaged file holds inf or 1e308
            status = app(prog_name="spinsim", standalone_mode=False) or 0
        sys.stdout.flush()
    except UsageProblem as error:
        status = refuse(usage_sentence(error))
    except InputError as error:
        status = refuse(error)
    except MemoryError as error:
        status = refuse(f"memory ran out ({error}): choose a smaller size, fewer samples or fewer replicas")
    except OSError as error:  # a full disk under the cache of compiled kernels, or under standard output
        from spinsim.machine.files import NO_DIRECTORY, has_directory

        sentence = f"{error.filename or 'a file'} cannot be used ({error.strerror}): make room or mend it"
        status = refuse(sentence if has_directory() else NO_DIRECTORY)
    except typer.Abort as error:
        if isinstance(error.__cause__, EOFError):  # the parser mistakes it for the end of the user's input
            raise error.__cause__ from None
        status = 130
    except KeyboardInterrupt:
        status = 130
    return int(status)
