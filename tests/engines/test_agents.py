"""An agent in a task of an engine: its end and the task's."""

import subprocess
import sys

from conftest import BIN_DIR, wait_for
from faults import Own

TASK = """
import sys
from tune_client._agent import run_agent
sys.exit(run_agent(sys.argv[1], sys.argv[2], None, 2, 1, []))
"""


def test_an_agent_that_is_killed_begins_anew_and_adopts_its_trials(tmp_path):
    with Own(tmp_path) as own:
        study = own.study("adopted", 4)
        task = subprocess.Popen([sys.executable, "-c", TASK, BIN_DIR / "tune", own.url])
        own.kill_agent()
        own.release()
        wait_for(lambda: study.info()["state"] == "completed", "the study's end")
        task.kill()
        task.wait()
        own.check(study, 4)
