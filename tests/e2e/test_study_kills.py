"""kill -9 of the server in the middle of a study, again and again: the study ends with exactly its budget, no result that
was acknowledged is lost, and no trial is in two hands. TUNE_KILLS sets how often (default 4)."""

import http.client
import json
import os
import random
import threading
import time
import urllib.error
import urllib.request

import pytest

from study_support import OK, credentials, end_all_of, free_port, read_lines_until, start, tune

KILLS = int(os.environ.get("TUNE_KILLS", "4"))
TRIALS = 40 * KILLS
WORKERS = 6
PATH = "/api/2.0/tune/studies/s"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    yield
    end_all_of(tmp_path)


class Book:
    """What the workers received, for all of them."""

    def __init__(self):
        self.lock = threading.Lock()
        self.held = {}
        self.told = {}
        self.faults = []
        self.over = threading.Event()

    def take(self, worker, trial):
        with self.lock:
            holder = self.held.get(trial["number"])
            if holder is not None and holder != worker:
                self.faults.append(f"trial {trial['number']} is held by {holder} and {worker}")
            self.held[trial["number"]] = worker

    def give(self, trial, value):
        with self.lock:
            self.held.pop(trial["number"])
            if trial["number"] in self.told:
                self.faults.append(f"trial {trial['number']} was told twice")
            self.told[trial["number"]] = value


TOKENS = {}  # by address; a worker reads its token once, before the server is killed


def post(url, path, body, over):
    """Repeats the same request until it is answered; the server comes back."""
    data = json.dumps(body).encode()
    while not over.is_set():
        try:
            headers = {"Content-Type": "application/json", **TOKENS[url]}
            request = urllib.request.Request(url + path, data=data, headers=headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            if error.code != 503 and error.code != 429:
                raise AssertionError(f"{path} {body}: {error.code} {text}") from None
        except (urllib.error.URLError, OSError, http.client.HTTPException, json.JSONDecodeError):  # or half an answer
            over.wait(0.02)
    return None


def work(url, worker, book):
    try:
        for turn in range(10 ** 6):
            answer = post(url, f"{PATH}/ask", {"request_id": f"{worker}-{turn}", "worker": worker}, book.over)
            if answer is None or answer["state"] == "completed":
                return
            if not answer["trials"]:
                book.over.wait(0.02)
                continue
            trial = answer["trials"][0]
            book.take(worker, trial)
            value = trial["params"]["x"] + trial["number"]
            told = post(url, f"{PATH}/tell", {"number": trial["number"], "attempt": trial["attempt"], "value": value,
                                              "request_id": f"{worker}-{turn}-end"}, book.over)
            if told is None:
                return
            book.give(trial, value)
    except AssertionError as fault:
        book.faults.append(str(fault))
        book.over.set()



def test_the_study_ends_with_exactly_its_budget(tmp_path):
    draw = random.Random(7)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    book = Book()

    def begin():
        process = start("server", "--port", port, cwd=tmp_path)
        read_lines_until(process, "listening on", "stdout")
        return process

    process = begin()
    TOKENS[url] = credentials(url)
    post(url, "/api/2.0/tune/studies", {"name": "s", "metric": {"name": "loss"}, "space": {"x": {"float": [0, 1]}},
                                        "sampler": {"type": "tpe", "seed": 5}, "budget": {"trials": TRIALS}}, book.over)
    workers = [threading.Thread(target=work, args=(url, f"w{n}", book)) for n in range(WORKERS)]
    for worker in workers:
        worker.start()
    kills = 0
    for kill in range(KILLS):
        # In the middle: each kill waits for its share of the trials, and then for a random moment.
        share = kill * TRIALS // (KILLS + 1)
        while not book.over.is_set() and len(book.told) < share:
            book.over.wait(0.005)
        time.sleep(draw.uniform(0, 0.05))
        process.kill()
        process.communicate()
        kills += 1
        process = begin()
    for worker in workers:
        worker.join(timeout=300)
    book.over.set()
    assert not book.faults, book.faults[:5]
    assert kills == KILLS
    with urllib.request.urlopen(url + PATH, timeout=60) as answer:
        study = json.loads(answer.read())
    assert study["state"] == "completed" and study["ended_by"] == "trials"
    assert study["trials"] == study["counts"]["complete"] == TRIALS
    assert set(book.told) == set(range(TRIALS)), "every trial was told once, none more than the budget"
    shown, token = [], ""
    while token is not None:
        with urllib.request.urlopen(f"{url}{PATH}/trials?max_results=1000&page_token={token}", timeout=60) as answer:
            page = json.loads(answer.read())
        shown += page["trials"]
        token = page.get("next_page_token")
    assert {t["number"]: t["value"] for t in shown} == book.told
    assert {t["attempt"] for t in shown} == {1}, "none ran twice"
    done = tune("replay", "s", "--server", url, cwd=tmp_path)
    assert done.returncode == OK, done.stdout + done.stderr
    process.terminate()
    process.communicate(timeout=60)
