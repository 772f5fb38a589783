import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { fence, frontOf, objectiveOf, promote, withObjective } = await load("data/study/pareto.ts");
const { mergeTrial } = await load("data/study/study.ts");

const trial = (number, values, more = {}) => mergeTrial(undefined, { number, state: "complete", value: values[0], values, run_id: `r${number}`, params: {}, ...more });
const goals = (...all) => all.map((goal, k) => ({ name: `m${k}`, goal }));
const numbers = (trials) => trials.map((one) => one.number);

test("the front is what no other trial beats, best in the first objective first", () => {
    const some = [trial(0, [1, 5]), trial(1, [2, 3]), trial(2, [3, 3]), trial(3, [4, 1]), trial(4, [2, 6]), trial(5, [4, 1])];
    assert.deepEqual(numbers(frontOf(some, goals("min", "min"))), [0, 1, 3, 5], "equal trials do not beat each other");
    assert.deepEqual(numbers(frontOf(some, goals("max", "max"))), [3, 5, 2, 4]);
    assert.deepEqual(numbers(frontOf(some, goals("min", "max"))), [0, 4]);
    assert.deepEqual(frontOf([], goals("min", "min")), []);
});

test("what is not complete, breaks a constraint or has no value is not on the front", () => {
    const some = [
        trial(0, [0, 0], { violation: 0.1 }), trial(1, [0, 0], { state: "running" }), trial(2, [0, "NaN"]), trial(3, ["-Infinity", 0]),
        trial(4, [3, 3]), trial(5, [0, 0], { state: "failed" }),
    ];
    assert.deepEqual(numbers(frontOf(some, goals("min", "min"))), [4]);
    assert.deepEqual(frontOf(some.slice(0, 4), goals("min", "min")), []);
});

test("fronts of two to four objectives are those of the definition", () => {
    let seed = 11;
    const draw = () => ((seed = (seed * 1664525 + 1013904223) >>> 0) >>> 16) % 9; // few values: many ties
    for (const count of [2, 3, 4]) {
        const metrics = goals("min", "max", "min", "max").slice(0, count);
        const some = Array.from({ length: 150 }, (_, i) => trial(i, metrics.map(draw)));
        const loss = (one, k) => objectiveOf(one, k) * (metrics[k].goal === "min" ? 1 : -1);
        const beats = (a, b) => metrics.every((_, k) => loss(a, k) <= loss(b, k)) && metrics.some((_, k) => loss(a, k) < loss(b, k));
        const expected = numbers(some.filter((one) => !some.some((other) => beats(other, one))));
        assert.ok(expected.length > 0 && expected.length < 150);
        assert.deepEqual(numbers(frontOf(some, metrics)).sort((a, b) => a - b), expected);
        const pair = [1, 0];
        const of = frontOf(some, metrics, pair);
        assert.ok(of.every((one) => !some.some((other) => pair.every((k) => loss(other, k) <= loss(one, k)) && pair.some((k) => loss(other, k) < loss(one, k)))));
    }
});

test("a running trial has its values so far, and they go when it ends without a result", () => {
    const running = mergeTrial(undefined, { number: 0, state: "running", intermediate: [[1, 0.5]], values_now: [0.5, 7] });
    assert.deepEqual([objectiveOf(running, 0), objectiveOf(running, 1)], [0.5, 7]);
    const failed = mergeTrial(running, { number: 0, state: "failed", value: null });
    assert.ok(Number.isNaN(objectiveOf(failed, 1)));
    const complete = mergeTrial(running, { number: 0, state: "complete", value: 0.4, values: [0.4, 6] });
    assert.deepEqual([objectiveOf(complete, 0), objectiveOf(complete, 1)], [0.4, 6]);
});

test("another objective takes the first one's place, with its values and without its curves", () => {
    const some = [trial(0, [1, 2, 3], { intermediate: [[0, 9]] }), mergeTrial(undefined, { number: 1, state: "running", intermediate: [[0, 9]] })];
    assert.deepEqual(promote(["a", "b", "c"], 2), ["c", "a", "b"]);
    assert.equal(withObjective(some, 0), some);
    const [moved, waiting] = withObjective(some, 2);
    assert.deepEqual([moved.value, ...moved.moreValues, moved.steps.length], [3, 1, 2, 0]);
    assert.ok(Number.isNaN(waiting.value));
    assert.deepEqual([some[0].value, some[0].steps.length], [1, 1], "the trial itself is not changed");
});

test("a diverged trial is outside the fence, whatever is good never is", () => {
    const many = [...Array.from({ length: 20 }, (_, i) => i), 1e9, -1e9];
    assert.deepEqual(fence(many, "min").sort((a, b) => a - b).slice(-1), [19]);
    assert.ok(fence(many, "min").includes(-1e9) && fence(many, "max").includes(1e9));
    assert.deepEqual(fence([3, NaN, 1], "min"), [1, 3]);
});
