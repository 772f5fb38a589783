"""A pool in plain Python for the tests, and the same trial as a process. What is to happen to trials in the middle is
in the folder FOLDER: `gate` with a number holds trials from that number on after their fifth step."""

# Its loss depends on its parameter and the step alone; a further attempt goes on from the last one's checkpoint.
COMMON = """
import json, os, pathlib, signal, sys, threading, time
FOLDER = pathlib.Path(os.environ["FOLDER"])
STEPS = 12

def number_in(name):
    try:
        return int((FOLDER / name).read_text() or -1)
    except (FileNotFoundError, ValueError):
        return None

def train(number, attempt, x, folder, report, asked):
    state = pathlib.Path(folder) / "step"
    first = int(state.read_text()) if state.exists() else 0
    with open(FOLDER / f"starts-{number}", "a") as starts:
        print(attempt, file=starts)
    for step in range(first, STEPS):
        report({"loss": (x - 0.3) ** 2 + 1 / (step + 1), "step": step})
        (state.parent / "new").write_text(str(step + 1))
        os.replace(state.parent / "new", state)
        time.sleep(0.01)
        if number_in("killer") == number and step >= 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        if number_in("exits") == number and step >= 2:
            os._exit(7)
        while step == 4 and (gate := number_in("gate")) is not None and number >= gate:
            if number_in("deaf") != number and asked():
                return False
            time.sleep(0.01)
        if number_in("deaf") != number and asked():
            return False
    return True
"""

POOL = COMMON + """
from concurrent.futures import ThreadPoolExecutor
lock, events = threading.Lock(), {}
(FOLDER / f"pool-{os.getpid()}").write_text(os.environ["TUNE_POOL_SIZE"])

def say(event, trial, **more):
    with lock:
        print(json.dumps({"event": event, **trial, **more}), flush=True)

def run(line):
    trial = {"trial": line["trial"], "attempt": line["attempt"]}
    try:
        say("started", trial)
        say("log", trial, text=f"trial {line['number']}")
        done = train(line["number"], line["attempt"], line["parameters"]["x"], line["checkpoint_dir"],
                     lambda values: say("metrics", trial, values=values),
                     events[trial["trial"], trial["attempt"]].is_set)
        say("ended", trial, exit_code=0 if done else 11)
    except Exception as error:
        say("ended", trial, exit_code=1, message=repr(error))

with ThreadPoolExecutor(int(os.environ["TUNE_POOL_SIZE"])) as pool:
    for text in sys.stdin:
        line = json.loads(text)
        key = line.get("trial"), line.get("attempt")
        if line["op"] == "run":
            events[key] = threading.Event()
            pool.submit(run, line)
        elif line["op"] in ("prune", "stop") and key in events:
            events[key].set()
"""

PROCESS = COMMON + """
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
done = train(int(os.environ["TUNE_TRIAL"]), int(os.environ["TUNE_ATTEMPT"]), json.loads(os.environ["TUNE_PARAMS"])["x"],
             os.environ["TUNE_CHECKPOINT_DIR"], lambda values: print("tune: " + json.dumps(values), flush=True),
             lambda: asked)
sys.exit(0 if done else 11)
"""
