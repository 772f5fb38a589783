import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const axes = await load("data/study/axes.ts");
const { brushed, fitScale, linearTicks, logTicks, paramAxis, position, readBrush, ticks, valueAt, writeBrush } = axes;

test("ticks are round and inside", () => {
    assert.deepEqual(linearTicks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
    assert.deepEqual(linearTicks(-3, 7, 5), [-2, 0, 2, 4, 6]);
    assert.deepEqual(linearTicks(5, 5, 5), [5]);
    assert.deepEqual(logTicks(1e-4, 1e-1, 6), [1e-4, 1e-3, 1e-2, 1e-1]);
    assert.deepEqual(logTicks(16, 256, 5), [20, 30, 50, 70, 100, 200]);
    assert.ok(logTicks(1e-30, 1e30, 5).length <= 6);
});

test("an axis of whole numbers has no ticks between them", () => {
    assert.deepEqual(ticks({ kind: "linear", low: -0.01, high: 1.01, isWhole: true }, 6), [0, 1]);
    assert.deepEqual(ticks({ kind: "linear", low: 0, high: 7 }, 4), [0, 2, 4, 6]);
});

test("log and linear positions are inverses of valueAt", () => {
    for (const scale of [{ kind: "log", low: 1e-5, high: 0.1 }, { kind: "linear", low: -4, high: 9 }])
        for (const at of [0, 0.3, 1]) assert.ok(Math.abs(position(scale, valueAt(scale, at)) - at) < 1e-12);
    assert.ok(Number.isNaN(position({ kind: "log", low: 1, high: 10 }, -1)));
    assert.equal(position({ kind: "linear", low: 3, high: 3 }, 3), 0.5);
});

test("a category that the axis does not know is off it", () => {
    const scale = { kind: "category", values: ["a", "b", "c"] };
    assert.deepEqual(["a", "b", "c"].map((v) => position(scale, v)), [0, 0.5, 1]);
    assert.ok(Number.isNaN(position(scale, "z")));
    assert.deepEqual(ticks(scale, 2), ["a", "b", "c"]);
});

test("a scale fits its values and survives none, one, and what a log cannot show", () => {
    assert.deepEqual(fitScale([], false), { kind: "linear", low: 0, high: 1 });
    const one = fitScale([5], false);
    assert.ok(one.low < 5 && one.high > 5);
    assert.deepEqual(fitScale([NaN, Infinity, 1, 3], false, 0), { kind: "linear", low: 1, high: 3 });
    assert.deepEqual(fitScale([-1, 0, 1, 100], true, 0), { kind: "log", low: 1, high: 100 });
});

const trial = (number, params, value) => ({ number, state: "complete", params, value, steps: [], values: [] });

test("axes come from the space, or from the trials where it is silent", () => {
    const some = [trial(0, { a: 0.5, c: "x" }, 1), trial(1, { a: 2, c: "y" }, 2)];
    assert.deepEqual(paramAxis("a", { float: [1e-3, 10], log: true }, some).scale, { kind: "log", low: 1e-3, high: 10 });
    assert.deepEqual(paramAxis("o", { ordinal: [18, 34] }, some).scale.values, ["18", "34"]);
    assert.deepEqual(paramAxis("a", undefined, some).scale, { kind: "linear", low: 0.5, high: 2 });
    assert.deepEqual(paramAxis("c", undefined, some).scale.values, ["x", "y"]);
    const list = paramAxis("b", { choice: [[0.9, 0.99], true] }, some);
    assert.equal(list.get(trial(0, { b: [0.9, 0.99] }, 1)), "[0.9,0.99]");
    assert.equal(list.get(trial(0, {}, 1)), undefined);
});

test("brushes keep what lies within all of them, their ends too", () => {
    const some = Array.from({ length: 11 }, (_, i) => trial(i, { a: i / 10, o: i % 2 ? "x" : "y" }, i));
    const all = [paramAxis("a", { float: [0, 1] }, some), paramAxis("o", { choice: ["x", "y"] }, some)];
    const numbers = (brushes) => brushed(some, all, brushes).map((t) => t.number);
    assert.deepEqual(numbers([{ axis: "a", low: 0.2, high: 0.5 }]), [2, 3, 4, 5]);
    assert.deepEqual(numbers([{ axis: "a", low: 0.2, high: 0.5 }, { axis: "o", low: 0, high: 0.1 }]), [3, 5]);
    assert.equal(numbers([{ axis: "gone", low: 0, high: 0 }]).length, 11);
    some.push(trial(11, { o: "x" }, 1));
    assert.ok(!numbers([{ axis: "a", low: 0, high: 1 }]).includes(11), "inactive parameters are outside");
});

test("brushes in the address", () => {
    const brush = { axis: "a:b", low: 0.25, high: 0.75 };
    assert.deepEqual(readBrush(writeBrush(brush)), brush);
    for (const text of ["", "a", "a:1:0", "a:x:y", "a:1"]) assert.equal(readBrush(text), undefined);
});
