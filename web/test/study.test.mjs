import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const study = await load("data/study/study.ts");
const { bestSoFar, bestTrial, countStates, endedCount, lineage, mergeTrial, searchedParams, shownValue, topThreshold } = study;

const trial = (number, state, value, more = {}) => mergeTrial(undefined, { number, state, value, run_id: `r${number}`, params: {}, ...more });
const trials = [
    trial(0, "complete", 0.5), trial(1, "pruned", null, { intermediate: [[0, 0.1]] }), trial(2, "complete", 0.7),
    trial(3, "failed", null), trial(4, "complete", 0.3), trial(5, "running", null), trial(6, "complete", "NaN"),
];

test("best so far counts complete trials only", () => {
    assert.deepEqual(bestSoFar(trials, "min"), [0.5, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3]);
    assert.deepEqual(bestSoFar(trials, "max"), [0.5, 0.5, 0.7, 0.7, 0.7, 0.7, 0.7]);
    assert.ok(Number.isNaN(bestSoFar(trials.slice(1, 2), "min")[0]));
    assert.deepEqual(bestSoFar([], "min"), []);
});

test("the best trial is the earlier of equals", () => {
    assert.equal(bestTrial(trials, "min").number, 4);
    assert.equal(bestTrial([trial(0, "complete", 1), trial(1, "complete", 1)], "max").number, 0);
    assert.equal(bestTrial([trial(0, "pruned", 1)], "min"), undefined);
});

test("plots show the last report of a trial without a value", () => {
    assert.equal(shownValue(trials[1]), 0.1);
    assert.ok(Number.isNaN(shownValue(trials[3])));
});

test("an update keeps what it does not mention and adds its report in step order", () => {
    const first = trial(7, "running", undefined, { intermediate: [[0, 1], [2, 0.8]], worker: "w" });
    const next = mergeTrial(first, { number: 7, state: "running", intermediate_last: [1, 0.9] });
    assert.deepEqual([next.steps, next.values, next.worker, next.runId], [[0, 1, 2], [1, 0.9, 0.8], "w", "r7"]);
    const again = mergeTrial(next, { number: 7, state: "pruned", intermediate_last: { step: 2, value: "NaN" }, reason: "slow" });
    assert.ok(Number.isNaN(again.values[2]));
    assert.deepEqual([again.state, again.reason, again.steps.length], ["pruned", "slow", 3]);
    assert.deepEqual(first.steps, [0, 2], "the old trial is not changed");
});

test("states are counted", () => {
    assert.deepEqual(countStates(trials), { queued: 0, running: 1, complete: 4, pruned: 1, failed: 1, cancelled: 0 });
});

test("trials that failed before any success do not count as ended", () => {
    assert.equal(endedCount({}, countStates(trials)), 6);
    assert.equal(endedCount({ excused: 1 }, countStates(trials)), 5);
    assert.equal(endedCount({}, {}), 0);
});

test("the top share never is nobody", () => {
    const many = Array.from({ length: 20 }, (_, i) => trial(i, "complete", i));
    assert.equal(topThreshold(many, "min", 10), 1);
    assert.equal(topThreshold(many, "max", 10), 18);
    assert.equal(topThreshold(many.slice(0, 3), "min", 10), 0);
    assert.ok(Number.isNaN(topThreshold([], "min", 10)));
});

test("parameters: the space's order, then what only trials have, constants left out", () => {
    const space = { lr: { float: [0, 1] }, seed: { const: 1 }, opt: { choice: ["a"] } };
    const own = [trial(0, "complete", 1, { params: { extra: 1, lr: 0.1, seed: 1 } })];
    assert.deepEqual(searchedParams({ space }, own), ["lr", "opt", "extra"]);
});

test("a lineage goes back to the trial that started from nothing", () => {
    const of = (number, parent, member, from) => trial(number, "complete", 1, { parent, member, generation: from / 5, steps: [from, from + 5] });
    const population = new Map([of(0, null, 0, 0), of(1, null, 1, 0), of(2, 0, 0, 5), of(3, 0, 1, 5), of(4, 3, 1, 10), trials[0]].map((one) => [one.number, one]));
    population.set(7, trial(7, "complete", 1));
    assert.deepEqual([...lineage(population, 4)], [4, 3]);
    population.set(0, of(0, null, 0, 0));
    assert.deepEqual([...lineage(population, 4)], [4, 3, 0]);
    assert.deepEqual([...lineage(population, 7)], []);
    assert.deepEqual([...lineage(population, undefined)], []);
    assert.deepEqual([...lineage(population, 99)], []);
    assert.equal(population.get(0).origin.parent, undefined);
    const running = mergeTrial(population.get(4), { number: 4, state: "running" });
    assert.deepEqual(running.origin, { parent: 3, member: 1, from: 10, to: 15 }, "an update that does not mention it keeps it");
});

test("the clock of a study on which nobody works stands still", () => {
    const trials = [{ state: "complete", start: 100, end: 250 }, { state: "running", start: 200, end: 0 }];
    const at = (more, rows = trials) => study.elapsed({ state: "running", ...more }, rows, 1000);
    assert.equal(at({ status: "running" }), 900);
    assert.equal(at({ state: "paused" }), 900, "what runs goes on");
    assert.equal(at({ state: "paused" }, trials.slice(0, 1)), 150);
    assert.equal(at({ status: "interrupted" }), 150);
    assert.equal(at({ status: "deleted" }), 150);
    assert.ok(Number.isNaN(at({ status: "waiting" }, [])));
});

test("a study that came to its end without one good trial says so", () => {
    const at = (state, counts) => study.shownState({ state, counts });
    assert.equal(at("completed", { failed: 3 }), "all failed");
    assert.equal(at("completed", { failed: 3, cancelled: 1 }), "all failed");
    assert.equal(at("completed", { failed: 3, complete: 1 }), "completed");
    assert.equal(at("completed", { failed: 3, pruned: 1 }), "completed");
    assert.equal(at("completed", {}), "completed");
    assert.equal(at("running", { failed: 3 }), "running");
    assert.equal(study.shownState({ state: "completed" }), "completed");
    assert.equal(study.shownState({ state: "running", status: "interrupted", counts: { running: 0 } }), "interrupted");
    assert.equal(study.shownState({ state: "running", status: "interrupted", counts: { running: 1 } }), "interrupted", "its client is silent");
    assert.equal(study.shownState({ state: "running", status: "waiting", counts: { running: 1 } }), "running", "somebody took one since");
    assert.equal(study.shownState({ state: "paused", status: "deleted" }), "deleted");
});

test("studies stand as experiments do: by their latest activity", () => {
    const studies = [
        { name: "old", experiment_id: "1", created_ms: 100 },
        { name: "busy", experiment_id: "2", created_ms: 50 },
        { name: "younger", experiment_id: "1", created_ms: 120 },
        { name: "new", experiment_id: "3", created_ms: 900 },
    ];
    const activity = new Map([["1", 500], ["2", 800], ["3", 0]]);
    assert.deepEqual(study.byActivity(studies, activity).map(({ name }) => name), ["new", "busy", "younger", "old"]);
    assert.equal(studies[0].name, "old");
});

test("best runs of the studies of an experiment, live", () => {
    const first = { name: "a", best: { run_id: "r1" }, best_trials: [] };
    const second = { name: "b", best: null, best_trials: [{ run_id: "r2" }, { run_id: "r3" }] };
    let studies = study.withStudy([first], second);
    assert.deepEqual([...study.bestRuns(studies)], [["r2", "On the Pareto front of b"], ["r3", "On the Pareto front of b"], ["r1", "Best trial of a"]]);
    studies = study.withStudy(studies, { name: "a", best: { run_id: "r9" } });
    assert.ok(study.bestRuns(studies).has("r9") && !study.bestRuns(studies).has("r1"));
});
