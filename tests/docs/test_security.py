"""The faults of other servers that docs/security.md lists: each names a test that there is, and none is left out."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Faults in permissions of MLflow's servers up to 3.17.2, and those by which a path or source led around them.
KNOWN = {"CVE-2023-1177", "CVE-2023-2356", "CVE-2023-2780", "CVE-2023-6831", "CVE-2024-1558", "CVE-2024-1560",
         "CVE-2024-1594", "CVE-2024-3848", "CVE-2024-4263", "CVE-2025-11201", "CVE-2026-0545", "CVE-2026-2614",
         "CVE-2026-2651", "CVE-2026-2652", "GHSA-gq3w-7jj3-x7gr", "GHSA-mr9f-g8qf-4w4j"}


def rows():
    text = (ROOT / "docs" / "security.md").read_text()
    section = text.split("## Known faults of other servers")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_each_fault_has_its_test(row):
    path, name = re.fullmatch(r"`(\S+)` `(\w+)`", row[2]).groups()
    text = (ROOT / path).read_text()
    pattern = rf"^def {name}\(" if path.endswith(".py") else rf"^TEST(_F|_P)?\(\w+, {name}\)"
    assert re.search(pattern, text, re.MULTILINE), row


def test_no_known_fault_is_left_out():
    listed = {one for row in rows() for one in re.findall(r"CVE-[0-9]+-[0-9]+|GHSA(?:-\w{4}){3}", row[1])}
    assert listed == KNOWN
