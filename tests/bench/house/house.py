"""Prints what decisions/house.md states of a checkout: files per folder, lengths of functions, sizes of classes, words of READMEs;
with --headers what each third-party header and each of our own costs the compiler, with --build what a build spent.

    .venv/bin/python tests/bench/house/house.py [CHECKOUT] [--headers] [--build build/release]

Functions and classes are those of the product; tests and their support are left out.
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
PRODUCT = ("base", "tracker", "tuner", "worker", "loader", "web")


def tracked(checkout):
    listed = subprocess.run(["git", "ls-files"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    return [pathlib.PurePosixPath(line) for line in listed.splitlines()]


def function_lengths(text):
    """(lines, first line) of each function: what lies between a line at column 0 that opens a body and the brace that closes
    it; the sources are formatted. Members that are defined within a class are not seen."""
    start = None
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if re.match(r"[A-Za-z~].*\)[^;=]*\{$", line) and not line.startswith(("namespace", "class", "struct", "enum")):
            start = number
        elif line == "}" and start is not None:
            yield number - start - 1, lines[start]
            start = None


def classes(text):
    """(name, public, private) of each class and struct: members that begin at its own level. A struct Studies::Impl is a class
    of its own."""
    for match in re.finditer(r"^(class|struct) ([\w:]+)[^;{]*\{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL):
        kind, name, body = match.groups()
        is_public, counts = kind == "struct", collections.Counter()
        for line in body.splitlines():
            if label := re.match(r"(public|protected|private):", line):
                is_public = label[1] == "public"
            elif re.match(r"    [^ /}#].*[;{,(]$", line):
                counts[is_public] += 1
        yield name, counts[True], counts[False]


def header_seconds(header, checkout, times=3):
    """Processor seconds that g++ takes for a file which includes only this header, the least of several; None: it needs a library
    that is not where the system's are (LibTorch, Arrow, Python)."""
    best = None
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-I.", "-I/usr/include/eigen3", "-x", "c++", "-"],
                              input=f"#include <{header}>\n", text=True, capture_output=True, cwd=checkout)
        if done.returncode != 0:
            return None
        spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        best = spent if best is None else min(best, spent)
    return best


def report_headers(checkout):
    for name, seconds in sorted(((n, header_seconds(h, checkout)) for n, h in HEADERS.items()), key=lambda cost: -cost[1]):
        print(f"header {name:<20} {seconds:.1f} s")
    own = [path for path in tracked(checkout) if path.suffix == ".h" and path.parts[0] in PRODUCT]
    costs = [(header_seconds(path, checkout, times=1), str(path)) for path in own]
    known = sorted((cost for cost in costs if cost[0] is not None), reverse=True)
    print(f"our headers                 {len(own)}, measured {len(known)}; "
          f"p50 p90 {at(known, .5)[0]:.1f} {at(known, .1)[0]:.1f} s; all {sum(seconds for seconds, _ in known):.0f} s")
    for seconds, path in known[:10]:
        print(f"our header {path:<46} {seconds:.1f} s")


def report_build(folder):
    """What ninja's log says of the latest build of each output: seconds on the wall of each command, all together and the longest."""
    spent = {}
    for line in (folder / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        spent[output] = (int(end) - int(start)) / 1000
    compiled = {output: seconds for output, seconds in spent.items() if output.endswith(".o")}
    print(f"compile commands            {len(compiled)}, {sum(compiled.values()):.0f} s together")
    for output, seconds in sorted(compiled.items(), key=lambda one: -one[1])[:5]:
        print(f"compile {output.rpartition('/')[2]:<44} {seconds:.1f} s")


def at(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def report(checkout):
    files = tracked(checkout)
    sources = [path for path in files if path.suffix in SOURCE]
    texts = {path: (checkout / path).read_text(errors="replace") for path in sources}
    folders = collections.Counter(path.parent for path in sources)
    product = {path: text for path, text in texts.items() if path.parts[0] in PRODUCT}
    functions = sorted((lines, str(path), head) for path, text in product.items() if path.suffix == ".cc"
                       for lines, head in function_lengths(text))
    lengths = [lines for lines, _, _ in functions]
    lines = sorted(((text.count("\n"), str(path)) for path, text in texts.items()), reverse=True)
    sizes = sorted((entry for text in product.values() for entry in classes(text)), key=lambda entry: -entry[1] - entry[2])
    widest = sorted(sizes, key=lambda entry: -entry[1])
    print(f"tracked files               {len(files)}")
    print(f"folders over 25 sources     {sum(count > 25 for count in folders.values())}")
    print(f"fullest folders             {', '.join(f'{folder} {count}' for folder, count in folders.most_common(3))}")
    print(f"functions p50 p90 p99 max   {at(lengths, .5)} {at(lengths, .9)} {at(lengths, .99)} {lengths[-1]}")
    print(f"longest functions           {', '.join(f'{path} {lines}' for lines, path, _ in functions[:-4:-1])}")
    print(f"longest file                {lines[0][1]} {lines[0][0]}")
    print(f"classes (public/private)    {', '.join(f'{name} {public}/{private}' for name, public, private in sizes[:10])}")
    print(f"widest by public members    {', '.join(f'{name} {public}' for name, public, _ in widest[:5])}")
    for folder in ("", "tracker/", "tuner/", "worker/", "loader/", "web/"):
        readme = checkout / f"{folder}README.md"
        if readme.exists():
            print(f"words of {folder + 'README.md':<18} {len(readme.read_text().split())}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[3])
    parser.add_argument("--headers", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, help="a build folder of ninja's")
    wanted = parser.parse_args()
    report(wanted.checkout)
    if wanted.build:
        report_build(wanted.build)
    if wanted.headers:
        report_headers(wanted.checkout)


if __name__ == "__main__":
    main()
