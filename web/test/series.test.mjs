import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { align, appendPoint, decodeSeries, describe, emptySeries, isStale, smooth, xValues } = await load("data/curves/series.ts");
const wire = (extra = {}) => ({ run_id: "r", count: 3, nan_count: 0, step: [0, 1, 2], time: [1000, 2000, 4000], last: [3, 2, 1], ...extra });

test("without extrema every part is one point", () => {
    const series = decodeSeries(wire());
    assert.deepEqual(series.min, [3, 2, 1]);
    assert.deepEqual(series.counts, [1, 1, 1]);
});

test("extrema, counts and NaN decode", () => {
    const series = decodeSeries(wire({ count: 30, nan_count: 4, last: [3, null, 1], min: [1, null, 0], max: [9, null, 2], counts: [10, 4, 16] }));
    assert.ok(Number.isNaN(series.last[1]) && Number.isNaN(series.max[1]));
    assert.deepEqual(describe([series]), { shown: 3, total: 30, nan: 4 });
});

test("live points go where their step belongs", () => {
    const series = emptySeries("r");
    for (const [step, value] of [[0, 5], [2, 3], [1, 4], [2, 7], [3, "NaN"], [3, 2]]) appendPoint(series, step, step * 10, value);
    assert.deepEqual(series.step, [0, 1, 2, 3]);
    assert.deepEqual(series.last, [5, 4, 7, 2]);
    assert.deepEqual([series.min[2], series.max[2]], [3, 7]);
    assert.equal(series.min[3], 2);
    assert.deepEqual([series.count, series.nanCount, series.counts[2]], [6, 1, 2]);
});

test("many live points ask for a new read", () => {
    const series = emptySeries("r");
    for (let step = 0; step <= 20; ++step) appendPoint(series, step, step, 1);
    assert.equal(isStale(series, 10), true);
    assert.equal(isStale(series, 40), false);
});

test("smoothing keeps constants, gaps and the first value", () => {
    assert.deepEqual(smooth([2, 2, 2], [1, 1, 1], 0.9).map((v) => v.toFixed(12)), ["2.000000000000", "2.000000000000", "2.000000000000"]);
    const gappy = smooth([4, NaN, 8], [1, 1, 1], 0.5);
    assert.equal(gappy[0], 4);
    assert.ok(Number.isNaN(gappy[1]));
    assert.ok(gappy[2] > 4 && gappy[2] < 8);
    assert.deepEqual(smooth([1, 5, 2], [1, 1, 1], 0), [1, 5, 2]);
});

test("a weight of 1 does not flatten the curve", () => {
    const smoothed = smooth([0, 10, 10, 10], [1, 1, 1, 1], 1);
    assert.ok(smoothed[3] > 5);
});

test("a part of ten points weighs as ten points", () => {
    const raw = smooth([0, ...new Array(10).fill(1)], new Array(11).fill(1), 0.8);
    const sampled = smooth([0, 1], [1, 10], 0.8);
    assert.ok(Math.abs(raw[10] - sampled[1]) < 1e-12);
});

test("x is the step, the time, or the time since the start", () => {
    const series = decodeSeries(wire());
    assert.deepEqual(xValues(series, "step"), [0, 1, 2]);
    assert.deepEqual(xValues(series, "time"), [1, 2, 4]);
    assert.deepEqual(xValues(series, "relative"), [0, 1, 3]);
});

test("curves with different steps share one x: no point is not a gap", () => {
    const { x, ys } = align([{ x: [0, 2], y: [1, NaN] }, { x: [1, 2], y: [5, 6] }]);
    assert.deepEqual(x, [0, 1, 2]);
    assert.deepEqual(ys, [[1, undefined, null], [undefined, 5, 6]]);
});
