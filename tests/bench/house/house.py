"""Prints what decisions/house.md states of a checkout: files a folder, lengths of functions, sizes of classes, words of READMEs and,
with --headers, what each third-party header costs the compiler.

    .venv/bin/python tests/bench/house/house.py [CHECKOUT] [--headers]
"""

import argparse
import collections
import pathlib
import re
import resource
import subprocess

HEADERS = {
    "Boost.Beast": "boost/beast.hpp",
    "Boost.Asio": "boost/asio.hpp",
    "spdlog": "spdlog/spdlog.h",
    "CLI11": "CLI/CLI.hpp",
    "nlohmann/json": "nlohmann/json.hpp",
    "simdjson": "simdjson.h",
    "Eigen": "Eigen/Dense",
    "yaml-cpp": "yaml-cpp/yaml.h",
    "GoogleTest": "gtest/gtest.h",
    "GoogleMock": "gmock/gmock.h",
}
SOURCE = (".cc", ".h")


def tracked(checkout):
    listed = subprocess.run(["git", "ls-files"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    return [pathlib.PurePosixPath(line) for line in listed.splitlines()]


def function_lengths(text):
    """Lines between a line at column 0 that opens a body and the brace that closes it; the sources are formatted."""
    start = None
    for number, line in enumerate(text.splitlines()):
        if re.match(r"[A-Za-z~].*\)[^;=]*\{$", line) and not line.startswith(("namespace", "class", "struct", "enum")):
            start = number
        elif line == "}" and start is not None:
            yield number - start - 1
            start = None


def classes(text):
    """(name, public, private) of each class and struct: members that begin at its own level."""
    for match in re.finditer(r"^(class|struct) (\w+)[^;{]*\{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL):
        kind, name, body = match.groups()
        is_public, counts = kind == "struct", collections.Counter()
        for line in body.splitlines():
            if label := re.match(r"(public|protected|private):", line):
                is_public = label[1] == "public"
            elif re.match(r"    [^ /}#].*[;{,(]$", line):
                counts[is_public] += 1
        yield name, counts[True], counts[False]


def header_seconds(header):
    """Processor seconds that g++ takes for a file which includes only this header; the least of three."""
    best = None
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-I/usr/include/eigen3", "-x", "c++", "-"],
                       input=f"#include <{header}>\n", text=True, check=True, capture_output=True)
        spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        best = spent if best is None else min(best, spent)
    return best


def at(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def report(checkout):
    files = tracked(checkout)
    sources = [path for path in files if path.suffix in SOURCE]
    texts = {path: (checkout / path).read_text(errors="replace") for path in sources}
    folders = collections.Counter(path.parent for path in sources)
    lengths = sorted(n for path, text in texts.items() if path.suffix == ".cc" for n in function_lengths(text))
    lines = sorted(((text.count("\n"), str(path)) for path, text in texts.items()), reverse=True)
    sizes = sorted((entry for path, text in texts.items() if path.parts[0] != "tests" for entry in classes(text)),
                   key=lambda entry: -entry[1] - entry[2])
    print(f"tracked files               {len(files)}")
    print(f"folders over 25 sources     {sum(count > 25 for count in folders.values())}")
    print(f"fullest folders             {', '.join(f'{folder} {count}' for folder, count in folders.most_common(3))}")
    print(f"functions p50 p90 p99 max   {at(lengths, .5)} {at(lengths, .9)} {at(lengths, .99)} {lengths[-1]}")
    print(f"longest file                {lines[0][1]} {lines[0][0]}")
    print(f"classes (public/private)    {', '.join(f'{name} {public}/{private}' for name, public, private in sizes[:8])}")
    for folder in ("", "tracker/", "tuner/", "worker/", "loader/", "web/"):
        readme = checkout / f"{folder}README.md"
        if readme.exists():
            print(f"words of {folder + 'README.md':<18} {len(readme.read_text().split())}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[3])
    parser.add_argument("--headers", action="store_true")
    wanted = parser.parse_args()
    report(wanted.checkout)
    if wanted.headers:
        for name, seconds in sorted(((n, header_seconds(h)) for n, h in HEADERS.items()), key=lambda cost: -cost[1]):
            print(f"header {name:<20} {seconds:.1f} s")


if __name__ == "__main__":
    main()
