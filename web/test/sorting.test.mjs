import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";
import { columns, makeTable } from "./table.mjs";

const { groupRows, sortGroups, sortRows, summarize } = await load("data/runs/sorting.ts");
const table = makeTable();
const spec = (id) => columns.columnSpec(table, id, 10_000);
const all = [0, 1, 2, 3, 4];

test("numbers, then NaN, then missing, in both directions", () => {
    assert.deepEqual(sortRows(all, spec("metrics.loss"), false), [1, 0, 4, 2, 3]);
    assert.deepEqual(sortRows(all, spec("metrics.loss"), true), [4, 0, 1, 2, 3]);
});

test("text sorts as people expect, equal values keep their order", () => {
    assert.deepEqual(sortRows(all, spec("name"), false), [0, 1, 2, 3, 4]);
    assert.deepEqual(sortRows([4, 2, 0], spec("params.lr"), false), [2, 4, 0]);
});

test("summaries leave NaN and missing out and are exact for constants", () => {
    assert.deepEqual(summarize([1, 2, 3, NaN, undefined]), { count: 3, mean: 2, min: 1, max: 3, deviation: 1 });
    assert.deepEqual(summarize([0.1, 0.1, 0.1]), { count: 3, mean: 0.1, min: 0.1, max: 0.1, deviation: 0 });
    assert.deepEqual(summarize([5]), { count: 1, mean: 5, min: 5, max: 5, deviation: 0 });
    assert.equal(summarize([NaN]), undefined);
    assert.ok(Math.abs(summarize([1e9 + 1, 1e9 + 2, 1e9 + 3]).deviation - 1) < 1e-9);
});

test("groups hold every run once; runs without the key are a group too", () => {
    const groups = groupRows(all, spec("tags.team"), [spec("metrics.loss")]);
    assert.deepEqual(groups.map((group) => [group.label, group.rows]), [["vision", [0]], ["–", [1, 3, 4]], ["Vision-2", [2]]]);
    assert.equal(groups[1].summaries.get("metrics.loss").mean, 1.125);
    assert.equal(groups[2].summaries.size, 0);
});

test("groups sort by an aggregate, those without it last", () => {
    const groups = groupRows(all, spec("params.opt"), [spec("metrics.loss")]);
    assert.deepEqual(sortGroups(groups, "metrics.loss", "mean", false).map((g) => g.label), ["adamw", "sgd", "it's"]);
    assert.deepEqual(sortGroups(groups, "metrics.loss", "max", true).map((g) => g.label), ["it's", "sgd", "adamw"]);
    const byTeam = groupRows(all, spec("tags.team"), [spec("metrics.loss")]);
    assert.equal(sortGroups(byTeam, "metrics.loss", "min", true).at(-1).label, "Vision-2");
});
