#!/usr/bin/env python3
"""Runs the benchmarks and prints one table with our figures, their targets and the peers measured in the same run.

    tests/bench/run.py                 our figures
    tests/bench/run.py --peers         ours and the peers' (installs them on first use; takes minutes)
    tests/bench/run.py --json tracker  one area, as JSON lines
    tests/bench/run.py engines         on Spark, Ray and Slurm, each engine's own way beside ours
    tests/bench/run.py --trials 200 engines

A benchmark is a program `*_bench` in build/<preset>/bin or a script tests/bench/<area>/*_bench.py. It prints one JSON
object a figure: name, value, unit, better ("higher" or "lower"), target (optional). A peer script is
tests/bench/<area>/peers.py; it prints the same names with the extra field "peer". What could not be measured has the
field "missing", the reason, and no value. Peer scripts run in an environment of their
own, build/peers/<area>, with what tests/bench/<area>/requirements.txt names (or, without one, tests/bench/requirements.txt)
and requirements-no-deps.txt beside it: peers whose pinned dependencies would push out another peer.
"""

import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
AREAS = ("tracker", "tuner", "loader", "worker")
NAMED_AREAS = (*AREAS, "engines")  # Spark, Ray and Slurm run only where somebody asks for them: they take half an hour
# Aims that are ratios to a peer of the same run: name -> (the peer's name begins so, times better).
RATIO_AIMS = {
    "log-metric, 16 clients, durable": ("fasttrackml", 25),
    "trainer step, mlp 64-128-128-10, batch 32, one thread, AdamW": ("pytorch", 2),
    "trainer step, cnn 8x8 16-32 channels, batch 32, one thread, AdamW": ("pytorch", 1),
    "trainer step, resnet18 3x32x32, batch 8, one thread, AdamW": ("pytorch", 1),
    "trainer step, gpt 4 layers of 128, 128 tokens, batch 8, one thread, AdamW": ("pytorch", 1),
    "two ranks, a step of mlp 64-512-512-512-10, batch 128, AdamW": ("torchrun", 1),
}


def read_figures(command, environment, area):
    """Runs one benchmark; lines that are no JSON objects (progress) go to stderr."""
    figures = []
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("{"):
            figures.append({**json.loads(line), "area": area})
        else:
            sys.stderr.write(line)
    if process.wait() != 0:
        sys.stderr.write(f"bench: '{' '.join(map(str, command))}' ended with {process.returncode}\n")
    return figures


def our_commands(area, bin_dir):
    folder = ROOT / "tests" / "bench" / area
    for source in sorted(folder.glob("*_bench.cc")):
        program = bin_dir / source.stem
        if program.exists():
            yield [str(program)]
    for script in sorted(folder.glob("*_bench.py")):
        yield [python_of(area), str(script)]


@functools.cache
def python_of(area):
    """Spark and Ray have an environment of their own; their benchmarks run them beside ours."""
    if area != "engines":
        return str(ROOT / ".venv" / "bin" / "python")
    setup = subprocess.run([ROOT / "tests" / "engines" / "setup.sh"], check=True, text=True, stdout=subprocess.PIPE)
    return setup.stdout.split()[-1]


def peer_python(area):
    """The peers' own environment, so that their dependencies never meet ours."""
    bench = ROOT / "tests" / "bench"
    own = bench / area / "requirements.txt"
    requirements = own if own.exists() else bench / "requirements.txt"
    alone = bench / area / "requirements-no-deps.txt"
    folder = ROOT / "build" / "peers" / (area if own.exists() else "all")
    python = folder / "bin" / "python"
    stamp = folder / ".installed"
    newest = max(file.stat().st_mtime for file in (requirements, alone) if file.exists())
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "-r", requirements], check=True)
        if alone.exists():
            subprocess.run([*pip, "--no-deps", "-r", alone], check=True)
        stamp.touch()
    return str(python)


def format_number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def target_of(figure, figures):
    """The figure's own target, or the one that a peer of this run gives; None without one."""
    peer, times = RATIO_AIMS.get(figure["name"], (None, None))
    for other in figures if peer else ():
        if other["name"] == figure["name"] and other.get("peer", "").lower().startswith(peer) and other.get("value"):
            return other["value"] * times if figure["better"] == "higher" else other["value"] / times
    return figure.get("target")


def verdict(figure, target):
    if "missing" in figure:
        return "MISSED"
    if target is None:
        return ""
    met = figure["value"] >= target if figure["better"] == "higher" else figure["value"] <= target
    return "met" if met else "MISSED"


def print_table(figures):
    ours = [figure for figure in figures if "peer" not in figure]
    print(f"{'figure':<58} {'ours':>12} {'target':>12} {'':>7}  peers (ratio: times better than the peer)")
    for figure in ours:
        peers = []
        for other in figures:
            if not other.get("peer") or other["name"] != figure["name"]:
                continue
            if "missing" in other:
                peers.append(f"{other['peer']} none: {other['missing']}")
            elif other["value"] and figure.get("value"):
                ratio = figure["value"] / other["value"]
                ratio = ratio if figure["better"] == "higher" else 1 / ratio
                peers.append(f"{other['peer']} {format_number(other['value'])} ({ratio:,.1f}x)")
        aim = target_of(figure, figures)
        target = format_number(aim) if aim is not None else ""
        name = f"{figure['name']} [{figure['unit']}]"
        value = format_number(figure["value"]) if "value" in figure else "none"
        if "missing" in figure:
            peers.insert(0, f"missing: {figure['missing']}")
        print(f"{name:<58} {value:>12} {target:>12} {verdict(figure, aim):>7}  {'; '.join(peers)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(NAMED_AREAS) + "; default: all but engines")
    parser.add_argument("--peers", action="store_true", help="measure the peers too")
    parser.add_argument("--trials", type=int, help="of the engines' benchmarks; default: 20")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a table")
    parser.add_argument("--bin-dir", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    options = parser.parse_args()
    unknown = set(options.areas) - set(NAMED_AREAS)
    if unknown:
        parser.error(f"unknown area {', '.join(sorted(unknown))}; known: {', '.join(NAMED_AREAS)}")

    environment = {**os.environ, "TUNE_BIN_DIR": str(options.bin_dir)}
    figures = []
    for area in options.areas or AREAS:
        more = ["--trials", str(options.trials)] if options.trials and area == "engines" else []
        for command in our_commands(area, options.bin_dir):
            figures += read_figures([*command, *more], environment, area)
        peers = ROOT / "tests" / "bench" / area / "peers.py"
        if options.peers and peers.exists():
            figures += read_figures([peer_python(area), str(peers)], environment, area)
    if options.json:
        for figure in figures:
            print(json.dumps(figure))
    else:
        print_table(figures)


if __name__ == "__main__":
    main()
