#!/usr/bin/env python3
"""Inputs that libFuzzer found, many in one text file: found/TARGET.txt holds one input a line.

    found.py unpack found/http.txt FOLDER       a file for each line, as libFuzzer reads them
    found.py pack FOLDER found/http.txt         the other way; sorted, each input once

A byte from space to ~ stands for itself except the backslash, which is \\\\; newline, carriage return and tab are
\\n, \\r, \\t; any other byte, and a # that begins a line, is \\xHH. Lines that begin with # are comments. The
empty input cannot be written, nor need it be: libFuzzer always tries it.
"""

import hashlib
import pathlib
import re
import sys

NAMES = {0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
VALUES = {text[1]: byte for byte, text in NAMES.items()}
PIECE = re.compile(r"[ -\[\]-~]|\\[\\nrt]|\\x[0-9a-f]{2}")


def escaped(data):
    text = "".join(NAMES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}") for byte in data)
    return "\\x23" + text[1:] if text.startswith("#") else text


def unescaped(line):
    pieces = PIECE.findall(line)
    if "".join(pieces) != line:
        raise ValueError(f"not an escaped input: {line!r}")
    return bytes(
        ord(piece) if len(piece) == 1 else int(piece[2:], 16) if len(piece) == 4 else VALUES[piece[1]]
        for piece in pieces
    )


def inputs_of(path):
    lines = pathlib.Path(path).read_text("ascii").split("\n")
    return [unescaped(line) for line in lines if line and not line.startswith("#")]


def unpack(path, folder):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for data in inputs_of(path):
        (pathlib.Path(folder) / f"found-{hashlib.sha1(data).hexdigest()[:10]}").write_bytes(data)


def pack(folder, path):
    found = {each.read_bytes() for each in pathlib.Path(folder).iterdir()}
    lines = sorted(escaped(data) for data in found if data)
    pathlib.Path(path).write_text("# One input a line; see tests/fuzz/found.py.\n" + "".join(f"{line}\n" for line in lines))
    assert set(inputs_of(path)) == found - {b""}, "what was written does not read back"


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        sys.exit(__doc__)
    {"pack": pack, "unpack": unpack}[sys.argv[1]](*sys.argv[2:])
