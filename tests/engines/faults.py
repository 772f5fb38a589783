"""A study of commands whose trials wait: what the tests of agents on Spark and Ray share."""

# Notes its process, waits while `hold` is there, and reports its parameter.
COMMAND = """
import json, os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / f"trial-{os.getpid()}").write_text(os.environ["TUNE_TRIAL"])
while (folder / "hold").exists():
    time.sleep(0.05)
print("tune: " + json.dumps({"loss": json.loads(os.environ["TUNE_PARAMS"])["x"]}), flush=True)
"""


def started(folder):
    """The trials that began, by their processes."""
    return {int(path.name[6:]): path.read_text() for path in folder.glob("trial-*")}
