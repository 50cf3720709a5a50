"""Bad input: one sentence on standard error, exit status 2, no traceback, nothing written."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import finish, one_sentence, spinsim, tree

# the command line, then words that its sentence holds: the value and the rule or the mend
COMMANDS = [
    # what the parser of the command line refuses
    ("aneal", "'aneal'", "did you mean 'anneal'"),
    ("foo", "'foo'", "spinsim --help"),
    ("--bogus", "--bogus", "No such option"),
    ("anneal --szie 8", "--szie", "did you mean --size"),
    ("temper --model cubic", "No such option: --model, give --lattice, --size and --couplings: see"),
    ("temper -T 2", "No such option: -T, give --temperatures: see"),
    ("temper --beta 0.4", "give --temperatures with T = 1 / beta"),
    ("anneal -J 1", "-J, give --couplings and --couplings-along"),
    ("transfer -L 8", "-L, give --width"),
    ("quantum --Gamma 1", "give --gamma"),
    ("anneal --temperature 2", "give --temperatures, --t-start and --t-stop"),
    ("anneal --num-reads 8", "give --replicas"),
    ("anneal --zzz 8", "No such option: --zzz: see 'spinsim anneal --help'"),
    ("anneal --size", "--size", "requires an argument"),
    ("anneal --quiet=3", "--quiet", "does not take a value"),
    ("anneal good.mc other.mc", "other.mc", "unexpected"),
    ("show", "FILE", "Missing argument"),
    ("bench", "bench", "Missing command"),
    ("bench metropolis --repeats 0", "repeats 0", "at least 1"),
    ("bench temper --threads 0", "threads 0", "from 1"),
    ("bench gemm --repeats 0", "repeats 0", "at least 1"),
    ("bench gemm --plot bars.txt", "bars.txt", ".pdf or .png"),
    # sizes
    ("anneal --size 0", "'0'", "positive integers"),
    ("anneal --size -3", "'-3'", "positive integers"),
    ("anneal --size 8x", "'8x'", "positive integers"),
    ("anneal --size x", "'x'", "positive integers"),
    ("anneal --size 8.5", "'8.5'", "positive integers"),
    ("anneal --size 1e3", "'1e3'", "positive integers"),
    ("anneal --size ³", "'³'", "positive integers"),
    (f"anneal --size {'9' * 5000}", "999", "positive integers"),
    ("anneal --size 8x8x8", "'8x8x8'", "a square lattice has 2"),
    ("anneal --size 8x8 --lattice cubic", "'8x8'", "a cubic lattice has 3"),
    # absurd sizes: the need and the room
    ("anneal --size 40000 --replicas 2000000", "1600000000 sites", "TiB of memory but", "available"),
    ("anneal --size 4000x4000x4000 --lattice cubic", "64000000000 sites", "TiB of memory but", "available"),
    ("anneal --size 9999999999 --lattice chain", "9999999999 sites", "TiB of memory but", "available"),
    ("anneal --size 1000x1000x1000 --lattice cubic --replicas 2000000", "1000000000 sites", "TiB of memory but"),
    ("anneal --size 30000 --couplings gaussian --replicas 100000", "100000 replicas", "TiB of memory but"),
    ("anneal --size 512 --couplings pm-j --samples 262144", "262144 samples", "TiB of memory but"),
    ("anneal --size 1 --couplings pm-j --samples 262144 --replicas 2000000", "2000000 replicas", "TiB of memory but"),
    # models
    ("anneal --lattice hexagonal", "'hexagonal'", "chain, square, cubic"),
    ("anneal --boundary closed", "'closed'", "periodic, open"),
    ("anneal --couplings pmj", "'pmj'", "'pm-j'"),
    ("anneal --bond-fraction 2 --couplings pm-j", "2.0", "from 0 to 1"),
    ("anneal --bond-fraction nan --couplings pm-j", "nan", "from 0 to 1"),
    ("anneal --bond-fraction 0.4", "0.4", "leave it out"),
    ("anneal --field nan", "nan", "not finite"),
    ("anneal --field inf", "inf", "not finite"),
    ("anneal --field x", "spinsim: --field 'x' is not a number: give one such as 0.5"),
    ("anneal --fields 1 --steps 2", "field has 1 number for 2 temperatures: give one for each"),
    ("anneal --field 1e308", "1e+308", "rescale"),
    ("anneal --samples 0 --couplings pm-j", "samples 0", "from 1"),
    ("anneal --samples 262145 --couplings pm-j", "262145", "to 262144"),
    ("anneal --samples 3", "3 samples", "all equal"),
    ("anneal --samples 1.5", "'1.5'", "not a whole number"),
    ("anneal --disorder-seed -1", "disorder_seed -1", "from 0"),
    # schedules
    ("anneal --t-start -1", "-1", "positive"),
    ("anneal --t-start 0", "t_start 0.0", "positive"),
    ("anneal --t-start nan", "nan", "finite"),
    ("anneal --t-stop inf", "inf", "finite"),
    ("anneal --t-stop abc", "'abc'", "not a number"),
    ("anneal --t-stop 1e-320", "t_stop 1e-320", "at least 1e-300"),
    ("anneal --t-start 1e300", "1e+300", "too high"),
    ("anneal --steps 0", "steps 0", "from 1"),
    ("anneal --steps 1.5", "'1.5'", "not a whole number"),
    ("anneal --steps 10000000000", "10000000000", "to 1000000000"),
    ("anneal --sweeps -1", "sweeps -1", "from 1"),
    ("anneal --sweeps 10000000000000", "10000000000000", "to 1000000000000"),
    ("anneal --sweeps 1000000000000 --steps 1000 --size 2", "half-sweeps", "2^48"),
    ("anneal --schedule linaer", "'linaer'", "'linear'"),
    ("anneal --start down", "'down'", "random, up"),
    ("anneal --zero-acceptance 0", "0.0", "above 0"),
    ("anneal --zero-acceptance nan", "nan", "above 0"),
    # ladders to be placed
    ("temper --temperatures auto:2:1", "auto:2:1", "give the lower one first"),
    ("temper --temperatures auto:1:1", "auto:1:1", "give the lower one first"),
    ("temper --temperatures auto:1", "'auto:1'", "such as auto:0.7:2.0"),
    ("temper --temperatures auto:", "'auto:'", "such as auto:0.7:2.0"),
    ("temper --temperatures auto:1:x", "'auto:1:x'", "such as auto:0.7:2.0"),
    ("temper --temperatures auto:1:2:3:4", "'auto:1:2:3:4'", "auto:LO:HI:COUNT"),
    ("temper --temperatures auto:1:2:1.5", "'auto:1:2:1.5'", "auto:LO:HI:COUNT"),
    ("temper --temperatures auto:1:2:1", "auto:1:2:1", "from 2 to 1000"),
    ("temper --temperatures auto:1:2:1001", "auto:1:2:1001", "from 2 to 1000"),
    ("temper --temperatures auto:0:2", "temperature 0", "positive"),
    ("temper --temperatures auto:-1:2", "temperature -1", "positive"),
    ("temper --temperatures auto:nan:2", "temperature nan", "finite"),
    ("temper --temperatures auto:1:inf", "temperature inf", "finite"),
    ("temper --size 4 --temperatures auto:1:1e300", "1e+300", "too high"),
    ("temper --size 4 --temperatures auto:0.001:0.002 --start up --quiet", "auto:0.001:0.002", "energies were equal"),
    # runs
    ("anneal --replicas 0", "replicas 0", "from 1"),
    ("anneal --replicas 3000000", "3000000", "to 2097152"),
    ("anneal --replicas 1e9", "1000000000", "out of range"),
    ("anneal --replicas 1e-9", "'1e-9'", "not a whole number"),
    ("anneal --seed -1", "seed -1", "from 0"),
    ("anneal --seed 18446744073709551616", "18446744073709551616", "to 18446744073709551615"),
    ("anneal --rng-rounds 8", "8", "10 or 7"),
    ("anneal --device tpu", "'tpu'", "choose one of auto, cpu, cuda, gpu"),
    ("anneal --threads 0", "threads 0", "from 1"),
    ("anneal --threads two", "'two'", "not a whole number"),
    # configuration files
    ("anneal --config missing.toml", "missing.toml", "No such file"),
    ("anneal --config folder", "configuration folder", "directory"),
    ("anneal --config malformed.toml", "malformed.toml", "line 1"),
    ("anneal --config binary.toml", "binary.toml is no text in UTF-8"),
    ("anneal --config digits.toml", "digits.toml", "not valid TOML"),
    ("anneal --config table.toml", "[anneel]", "did you mean 'anneal'"),
    ("anneal --config key.toml", "'sweps'", "did you mean 'sweeps'"),
    ("anneal --config flag.toml", "'bond-fraction'", "did you mean 'bond_fraction'"),
    ("anneal --config strange.toml", "'zzz'", "valid names are replicas, seed"),
    ("anneal --config array.toml", "anneal must be a table", "[anneal]"),
    ("anneal --config plain.toml", "model must be a table", "[model]"),
    ("anneal --config text.toml", "steps = '5'", "a whole number"),
    ("anneal --config boolean.toml", "replicas = True", "a whole number"),
    ("anneal --config fraction.toml", "replicas = 2.5", "a whole number"),
    ("anneal --config date.toml", "t_start = datetime.date(2020, 1, 1)", "a number"),
    ("anneal --config large.toml", "field inf", "not finite"),
    ("anneal --config side.toml", "'-3'", "positive integers"),
    ("anneal --config both.toml", "lattice 'cubic'", "instance 'good.mc'"),
    ("anneal --config nul.toml", r"'a\x00b'", "not a path"),
    # instances
    ("anneal missing.mc", "missing.mc", "does not exist"),
    ("anneal folder", "folder", "is a directory"),
    ("anneal empty.mc", "empty.mc", "is empty"),
    ("anneal short.mc", "line 1 of short.mc", "only 1 of m = 2 bonds"),
    ("anneal letters.mc", "line 3 of letters.mc", "'x' is not a number"),
    ("anneal beyond.mc", "line 3 of beyond.mc", "numbered 1 to 3"),
    ("anneal nan.mc", "line 3 of nan.mc", "must be finite"),
    ("anneal words.mc", "line 1 of words.mc", "no known format"),
    ("anneal good.mc --size 8", "size '8'", "instance 'good.mc'"),
    ("anneal good.mc --couplings gaussian", "couplings 'gaussian'", "leave one out"),
    # where results go
    ("anneal --size 4 --seed 9 --out run.h5", "run.h5", "holds another run", "--out"),
    ("anneal --size 4 --out text.h5", "text.h5", "no file of spinsim", "never overwritten"),
    ("anneal --size 4 --out foreign.h5", "foreign.h5", "never overwritten"),
    ("anneal --size 4 --out folder", "folder", "is a directory", "never overwritten"),
    ("anneal --size 4 --out dangling.h5", "dangling.h5", "never overwritten"),
    ("anneal --size 4 --out text.h5/a.h5", "text.h5/a.h5", "choose another --out"),
    ("anneal --size 4 --out text.h5/deeper/a.h5", "text.h5/deeper/a.h5", "choose another --out"),
    ("anneal --size 4 --out /dev/null/a.h5", "/dev/null/a.h5", "choose another --out"),
    (f"anneal --size 4 --out {'long' * 100}.h5", "longlong", "too long"),
    (f"anneal --size 4 --out new/{'long' * 100}.h5", "longlong", "too long"),
    # results that are none
    ("show missing.h5", "missing.h5", "is not there"),
    ("show folder", "folder", "is a directory"),
    ("show text.h5", "text.h5", "is damaged or no file of spinsim"),
    ("show foreign.h5", "foreign.h5", "is an HDF5 file without the seal of spinsim 1.0"),
    ("show hollow.h5", "hollow.h5", "is an HDF5 file without the seal of spinsim 1.0"),
    ("show cut.h5", "cut.h5", "is damaged, its bytes are not those of its SHA-256"),
    (f"show {'long' * 100}", "longlong", "too long"),
    ("plot missing.h5", "missing.h5", "is not there"),
    ("plot text.h5", "text.h5", "is damaged or no file of spinsim"),
    ("plot foreign.h5", "foreign.h5", "is an HDF5 file without the seal of spinsim 1.0"),
]


@pytest.mark.parametrize("case", COMMANDS, ids=[case[0][:60] for case in COMMANDS])
def test_bad_commands(refuse: Callable[..., str], case: tuple[str, ...]) -> None:
    line, *words = case
    refuse(line.split(" "), *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["anneal", "--size", ""], ("size ''", "positive integers")),
        (["anneal", "--out", ""], ("out ''", "not a path")),
        (["anneal", ""], ("instance ''", "not a path")),
        (["anneal", "two\nlines.mc"], (r"two\nlines.mc", "does not exist")),
        (["anneal", "--size", "4", "--out", "text.h5/\x1b[31m\n"], (r"text.h5/\x1b[31m\n", "choose another --out")),
        (["anneal", "--lattice", "two\nlines"], (r"two\nlines", "unknown")),
        (["foo\nbar"], ("foo", "No such command")),
    ],
    ids=repr,
)
def test_empty_and_odd_words(refuse: Callable[..., str], arguments: list[str], words: tuple[str, ...]) -> None:
    refuse(arguments, *words)


@pytest.mark.system
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("anneal --size 0 --out new/a.h5", ("'0'", "positive integers")),
        ("anneal --lattice cubic --size 5000 --replicas 2000000", ("125000000000 sites", "PiB of memory but")),
        ("anneal --size 4 --out text.h5", ("text.h5", "never overwritten")),
    ],
)
def test_bad_commands_as_processes(folder: Path, line: str, words: tuple[str, ...]) -> None:
    before = tree(folder)
    one_sentence(finish(spinsim(folder, *line.split())), *words)
    assert tree(folder) == before


@pytest.mark.parametrize(
    "line",
    [
        "--size 31623",
        "--lattice cubic --size 1000",
        "--lattice chain --size 1000000000",
        "--size 20 --couplings gaussian --samples 200000",
        "--size 20 --couplings pm-j --samples 200000",
        "--size 2 --couplings pm-j --samples 200000 --replicas 3000",
        "--steps 1000000000 --size 2 --replicas 1",
    ],
)
def test_what_cannot_fit_is_refused_before_it_is_allocated(
    refuse: Callable[..., str], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr("spinsim.machine.memory.available_bytes", lambda: 2**30)
    tracemalloc.start()
    try:
        began = time.process_time()
        refuse(["anneal", *line.split()], "of memory but 1.0 GiB are available")
        assert time.process_time() - began < 2
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
