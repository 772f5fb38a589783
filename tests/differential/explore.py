#!/usr/bin/env python3
"""Runs many random sequences against MLflow 3.17.2 and ours and prints each difference, made small.

    tests/differential/explore.py --sequences 5000 --seed 1 --length 25
    tests/differential/explore.py --one 17          only the sequence of seed 17
"""

import argparse
import collections
import contextlib
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from generator import AREAS, make_sequence
from replay import Replay, report, shrink
from scene import Side
from servers import mlflow_server, our_server


def signature(finding):
    """Findings with the same signature are most likely one defect."""
    places = ",".join(sorted({path.split("[")[0] for path, _, _ in finding.places}))
    damage = finding.request.mutation.split(" <")[0].split("=")[0]
    path = "/".join(part for part in finding.request.path.split("/")[3:] if "<<" not in part)[:60]
    return f"{finding.request.method} {path} [{damage}] {finding.theirs.status}/{finding.ours.status} {places}"


def survey(replay, sequence, seen):
    """Continues after a difference, so that one sequence shows all of its own (and what follows from them)."""
    found = []
    replay.run(sequence, found)
    for finding in found:
        name = signature(finding)
        seen[name] += 1
        if seen[name] == 1:
            print(finding.describe(), end="\n\n", flush=True)


def explore(options, replay):
    seen = collections.Counter()
    began = time.monotonic()
    seeds = [options.one] if options.one is not None else range(options.seed, options.seed + options.sequences)
    for seed in seeds:
        if time.monotonic() - began > options.seconds:
            print(f"the time is over: seed {seed} would be next")
            break
        sequence = make_sequence(seed, options.length, options.bad, options.areas)
        if options.survey:
            survey(replay, sequence, seen)
            continue
        finding = replay.run(sequence)
        if finding is None:
            continue
        name = signature(finding)
        seen[name] += 1
        if seen[name] > 1:
            continue
        sequence, finding = shrink(replay, sequence, finding)
        print(report(seed, sequence, finding), end="\n\n", flush=True)
        if len(seen) >= options.findings:
            break
    print(f"{replay.sequences} sequences of {replay.requests} requests in {time.monotonic() - began:.0f} s; "
          f"{sum(seen.values())} findings of {len(seen)} kinds")
    for title, count in sorted(replay.explained.items(), key=lambda pair: -pair[1]):
        print(f"{count:6} x known: {title}")
    for name, count in seen.most_common():
        print(f"{count:6} x {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no new sequence after this time")
    parser.add_argument("--one", type=int)
    parser.add_argument("--bad", type=float, default=0.15, help="share of damaged requests")
    parser.add_argument("--findings", type=int, default=40, help="stop after this many kinds of findings")
    parser.add_argument("--survey", action="store_true", help="one example of each kind of finding, not made small")
    parser.add_argument("--areas", nargs="+", default=["tracking", "artifacts"], choices=list(AREAS))
    parser.add_argument("--theirs", help="address of a running MLflow server, instead of starting one")
    parser.add_argument("--ours", help="address of our running server, instead of starting one")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        ours = options.ours or stack.enter_context(our_server())
        theirs = options.theirs or stack.enter_context(mlflow_server())
        explore(options, Replay(Side("MLflow", theirs), Side("ours", ours)))


if __name__ == "__main__":
    main()
