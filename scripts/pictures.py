"""Make pictures of the pages anew, and keep what was printed with them, the command and the machine.

    python scripts/pictures.py                  # pictures whose script changed since they were made, on this machine
    python scripts/pictures.py aging maxcut     # these

A picture is docs/images/NAME.png; docs/images/made/NAME.json tells how it came about. tests/house/test_pictures.py
compares both with the scripts: a picture whose example, or whose commands below, changed since is refused.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
IMAGES: Final = ROOT / "docs/images"
MADE: Final = IMAGES / "made"
OPTIONS: Final = {
    "coherence": "--full",
    "continuous_time": "--full",
    "critical_coupling": "--sizes 16,32,64,128,256 --spins 30 --seconds 80",
    "critical_field": "--full",
    "dynamic_exponent": "--sizes 32,64,128,256,512,1024 --moves 20000 --spins 26",
    "ground_states": "--sizes 20,30,40,60,80,100 --samples 100 --sweeps 50000",
    "houdayer": "--size 10 --samples 64 --sweeps 2400000 --measure-every 1000",
    "houdayer_large": "--size 16 --samples 16 --sweeps 300000 --measure-every 1000",
    "nishimori": "--full",
    "nishimori_cubic": "--full --cubic",
    "quantum_glass_transition": "--full",
    "residual_energy": "--full",
    "spin_glass_transition": "--full",
}
"""Of examples whose picture is that of a longer run than the default; all of these need a GPU."""
VARIANTS: Final = {"houdayer_large": "houdayer", "nishimori_cubic": "nishimori"}
"""Examples of pictures that are not named after theirs."""
COMMANDS: Final = {
    "overlaps": r"""
        spinsim temper --lattice cubic --size 4 --couplings pm-j --samples 16 \
            --temperatures 0.7:2:12 --sweeps 10000 --replicas 4 --out ea.h5
        spinsim plot ea.h5 --what overlap --format png
        mv ea-overlap.png overlaps.png""",
    "landscape": r"""
        spinsim anneal --lattice square --size 16 --couplings gaussian --temperatures 3:0.05:60 \
            --sweeps 20 --replicas 512 --out glass.h5
        spinsim plot glass.h5 --what landscape --format png
        mv glass-landscape.png landscape.png""",
    "spins": """
        spinsim temper --size 64 --temperatures 1.8:2.8:6 --sweeps 4000 --save-configurations 10 --out L64.h5
        spinsim view L64.h5 --out spins.png""",
    "gemm": """
        spinsim bench gemm --plot gemm.png""",
}  # fmt: skip
"""Of pictures that the program itself draws."""
EXAMPLES: Final = tuple(sorted(path.stem for path in (ROOT / "examples").glob("*.py")))
NAMES: Final = (*EXAMPLES, *VARIANTS, *COMMANDS)


def digest(content: bytes) -> str:
    """SHA-256 of a content, in short."""
    return hashlib.sha256(content).hexdigest()[:16]


def example(name: str) -> str:
    """Name of the example of a picture."""
    return VARIANTS.get(name, name)


def source(name: str) -> str:
    """Digest of what makes a picture: the lines of its example without its docstring and comments, or its commands."""
    if name in COMMANDS:
        return digest(command(name).encode())
    text = (ROOT / "examples" / f"{example(name)}.py").read_text()
    end = ast.parse(text).body[0].end_lineno
    lines = [line.rstrip() for line in text.splitlines()[end:] if not line.lstrip().startswith("#")]
    return digest("\n".join([*filter(None, lines), OPTIONS.get(name, "")]).encode())


def pictures(name: str) -> list[Path]:
    """Files of one name; the front page has a second form for narrow windows."""
    return [IMAGES / f"{name}.png"] + [IMAGES / f"{name}_tall.png"] * (name == "front_page")


def record(name: str) -> dict[str, Any]:
    """How a picture was made; empty where that is not known."""
    path = MADE / f"{name}.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def is_current(name: str) -> bool:
    """Return True if a picture and its record are those of the present script."""
    known = record(name)
    files = pictures(name)
    if not known or not all(path.exists() for path in files):
        return False
    return bool(known["source"] == source(name) and known["pictures"] == [digest(p.read_bytes()) for p in files])


def command(name: str) -> str:
    """The command of a picture, as a page gives it."""
    if name in COMMANDS:
        return "\n".join(line.strip() for line in re.sub(r"\\\n\s*", "", COMMANDS[name]).strip().splitlines())
    return f"python examples/{example(name)}.py {OPTIONS.get(name, '')}".strip()


def make(name: str) -> None:
    """Run the command of a picture in a folder of its own, and keep picture and output."""
    from spinsim.cli.bench import machine
    from spinsim.engine import resolve_device

    print(f"{name}: {command(name)}", flush=True)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"{name}.png"
        if name in COMMANDS:
            line = command(name).replace("spinsim ", f"{shlex.quote(sys.executable)} -m spinsim ")
        else:
            line = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'examples' / example(name)))}.py"
            line += f" {OPTIONS.get(name, '')} --figure {shlex.quote(str(target))}"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        told = subprocess.run(  # noqa: S603  (commands of this file)
            ["/bin/bash", "-ec", line], cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
        seconds = time.perf_counter() - began
        contents = [(path, (Path(folder) / path.name).read_bytes()) for path in pictures(name)]
    for path, content in contents:
        path.write_bytes(content)
    output = [each.rstrip() for each in told.stdout.splitlines() if folder not in each]
    about = {
        "command": command(name),
        "machine": machine(resolve_device("auto"), None),
        "date": date.today().isoformat(),
        "seconds": round(seconds, 1),
        "source": source(name),
        "pictures": [digest(content) for _, content in contents],
        "output": output,
    }
    MADE.mkdir(exist_ok=True)
    (MADE / f"{name}.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    """Make the pictures that are named, or those that have become old."""
    unknown = set(sys.argv[1:]) - set(NAMES)
    if unknown:
        sys.exit(f"{', '.join(sorted(unknown))}: unknown, choose from {', '.join(NAMES)}")
    for name in sys.argv[1:] or [name for name in NAMES if not is_current(name)]:
        make(name)


if __name__ == "__main__":
    main()
