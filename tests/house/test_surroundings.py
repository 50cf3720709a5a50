"""Closed streams, readers that go away, odd names, locales and settings: the run is done, nothing is a traceback."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Outcome, finish, one_sentence, run, spinsim, tree

import spinsim as ss
from spinsim import cli
from spinsim.inputs.texts import printable, quoted
from spinsim.machine.threads import stopping_on_signals
from spinsim.run.plan import Saving

RUN = "anneal --size 4 --steps 2 --sweeps 1 --replicas 2"
ODD = "a\nb\x1b[31m'c\udcff.h5"  # a new line, a colour, a quote, a byte that is not UTF-8
posix = pytest.mark.skipif(sys.platform == "win32", reason="file names and descriptors of Unix")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(line: str, folder: Path, **settings: str) -> Outcome:
    """A line of a shell in which ``spinsim`` is this one."""
    python = shlex.quote(sys.executable)
    code = f'spinsim() {{ {python} -m spinsim "$@"; }}\n{line}'
    done = subprocess.run(
        ["bash", "-c", code], cwd=folder, env=os.environ | settings, capture_output=True, timeout=300, check=False
    )
    return Outcome(done.returncode, *(text.decode(errors="surrogateescape") for text in (done.stdout, done.stderr)))


@pytest.mark.system
@posix
def test_runs_that_nobody_listens_to(folder):
    """With every stream closed, and with readers that have gone before the first line."""
    closed = f"spinsim {RUN} --out a.h5 <&- >&- 2>&-; echo $?"
    gone = f"spinsim {RUN} --seed 2 --out b.h5 2>&1 | true; echo ${{PIPESTATUS[0]}}"
    done = shell(f"{closed}; {gone}", folder)
    assert done.out.split() == ["0", "0"]
    assert done.err == ""
    assert ss.load(folder / "a.h5").finished
    assert ss.load(folder / "b.h5").finished
    assert (folder / "a.h5").read_bytes()[:9] == b"spinsim/1"  # nothing was printed into it


@pytest.mark.system
@posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device here")
def test_a_full_disk_under_standard_output_is_told_once(folder):
    done = shell("spinsim --help > /dev/full", folder)
    one_sentence(done, "standard output cannot be used (No space left on device)")


@pytest.mark.system
@posix
def test_names_and_locales_without_unicode(folder):
    """A name that is not text, in a locale that knows ASCII alone, with settings of libraries that are nonsense."""
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "MPLBACKEND": "nonsense"}
    name = shlex.quote("ü \udcff.h5")
    done = shell(f"spinsim {RUN} --out {name} && spinsim show {name} && spinsim plot {name}", folder, **settings)
    assert done.status == 0, done
    assert "Traceback" not in done.err
    assert done.err.isascii()
    assert {path.suffix for path in folder.iterdir()} == {".h5", ".pdf", ".txt"}
    assert done.out.isascii()


@pytest.mark.system
@posix
def test_numba_that_may_not_compile(folder):
    done = shell(f"spinsim {RUN}", folder, NUMBA_DISABLE_JIT="1")
    one_sentence(done, "NUMBA_DISABLE_JIT is set", "unset it")
    assert not tree(folder)


@posix
def test_odd_names_are_printed_on_one_line_and_can_be_copied(folder, capsys, monkeypatch):
    done = run(capsys, monkeypatch, *RUN.split(), "--out", ODD)
    assert done.status == 0
    assert done.out.replace("\n", "").isprintable()
    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith("Results")] == [f"Results  {printable(ODD)}"]
    shown = next(line for line in lines if line.startswith("Next"))
    words = subprocess.run(["bash", "-c", f"printf %s {shown.rpartition('show ')[2]}"], capture_output=True, check=True)
    assert words.stdout == os.fsencode(ODD)
    for command in ("show", "plot"):
        done = run(capsys, monkeypatch, command, ODD)
        assert done.status == 0
        assert done.out.replace("\n", "").isprintable()
        assert printable(Path(ODD).stem) in done.out


def test_words_for_a_shell():
    assert quoted("my run.h5") == "'my run.h5'"
    assert quoted("it's") == """'it'"'"'s'"""
    assert quoted(Path("runs/a.h5")) == "runs/a.h5"
    assert quoted("a\\\t'") == r"$'a\x5c\x09\x27'"
    assert printable("a\tb\x1b\udcff ü") == r"a\tb\x1b\udcff ü"


@posix
def test_pipes_and_devices_are_not_read(folder, capsys, monkeypatch):
    os.mkfifo("pipe.mc")
    for name in ("pipe.mc", "/dev/zero"):
        for words in (["anneal", name], ["anneal", "--config", name], ["temper", name]):
            one_sentence(run(capsys, monkeypatch, *words), f"{name} is a pipe or a device", "give a file")
    Path("long.toml").write_bytes(b"\n" * (2**20 + 1))
    one_sentence(run(capsys, monkeypatch, "anneal", "--config", "long.toml"), "longer than 1048576 bytes")
    with open("sparse.mc", "wb") as file:
        file.truncate(2**30)
    monkeypatch.setattr("spinsim.machine.memory.available_bytes", lambda: 2**30)
    one_sentence(run(capsys, monkeypatch, "anneal", "sparse.mc"), "reading sparse.mc needs 16.0 GiB", "1.0 GiB are")


@posix
@pytest.mark.parametrize("number", ["SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_signals_ask_to_stop_unless_they_mean_something_else(number):
    """Batch systems send those for users; under nohup, or where a program has handlers of its own, these stay."""
    number, own = getattr(signal, number), []
    before = signal.signal(number, signal.SIG_DFL)  # which the tests themselves may have been started without
    try:
        for handler, asks in ((signal.SIG_DFL, True), (signal.SIG_IGN, False), (lambda *told: own.append(told), False)):
            signal.signal(number, handler)
            saving = Saving(60)
            with stopping_on_signals(saving.stop):
                os.kill(os.getpid(), number)
                assert saving.asked_to_stop == asks
                if asks:
                    with pytest.raises(KeyboardInterrupt):
                        os.kill(os.getpid(), number)
            assert signal.getsignal(number) is handler
        assert len(own) == 1
    finally:
        signal.signal(number, before)


@pytest.mark.system
@posix
def test_the_interruption_of_a_run_names_a_line_to_copy(folder):
    longer = "--steps", 1000000, "--sweeps", 1000, "--checkpoint-every", 1
    process = spinsim(folder, *RUN.split(), *longer, "--out", "my run.h5")
    while not (folder / "my run.h5").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGHUP)
    done = finish(process)
    assert done.status == 130
    assert "spinsim resume 'my run.h5' completes it" in done.err


def test_everything_is_printed_by_say():
    """``say`` escapes; other prints of the command line are help texts and versions alone."""
    folder = Path(cli.__file__).parent
    printing = {path.name for path in folder.glob("*.py") if re.search(r"typer\.echo|\bprint\(", path.read_text())}
    assert printing == {"__init__.py", "saying.py"}
