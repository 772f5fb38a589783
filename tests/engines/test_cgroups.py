"""Limits by cgroups of version 2, and a trial that the kernel ends for want of memory, in a kernel of its own: most machines that
run tests have none to give. See tests/worker/agent/devices/cgroups_in_uml.sh."""

import shutil
import subprocess

from conftest import BIN_DIR, ROOT

TESTS = BIN_DIR / "agent_device_tests"


def test_cgroups_in_a_kernel_of_their_own():
    assert shutil.which("linux.uml"), "no linux.uml: tests/engines/setup.sh installs it"
    assert TESTS.exists(), f"no {TESTS}: tests/build.sh makes it"
    done = subprocess.run([ROOT / "tests" / "worker" / "agent" / "devices" / "cgroups_in_uml.sh", TESTS], capture_output=True,
                          text=True, timeout=290)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK ] RealCgroups.WhoNeedsTooMuchMemoryIsKilledAndSaysSo" in done.stdout, done.stdout
    assert "Memory cgroup out of memory: Killed process" in done.stdout, "the kernel's own word"
