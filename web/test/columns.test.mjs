import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";
import { columns, makeTable } from "./table.mjs";

const { orderMetrics } = await load("data/runs/metric_order.ts");
const { applyMetrics, applyParams, applyRun, columnSpec, allColumnIds, defaultColumnIds, parseNumber } = columns;

test("dense and sparse columns decode alike", () => {
    const table = makeTable();
    assert.deepEqual(table.params.get("rare"), [undefined, undefined, "x,y", undefined, undefined]);
    assert.deepEqual(table.metrics.get("loss"), [0.5, 0.25, NaN, undefined, 2]);
    assert.deepEqual(table.deleted, [false, false, false, false, true]);
    assert.equal(table.end[1], undefined);
});

test("a column of numbers is numeric, one other text makes it text", () => {
    const table = makeTable();
    assert.equal(columnSpec(table, "params.lr", 0).kind, "number");
    assert.equal(columnSpec(table, "params.lr", 0).get(1), 0.001);
    assert.equal(columnSpec(table, "params.lr", 0).get(3), undefined);
    assert.equal(columnSpec(table, "params.opt", 0).kind, "text");
    assert.equal(columnSpec(table, "params.none", 0), undefined);
    assert.equal(columnSpec(table, "constructor", 0), undefined);
    assert.equal(columnSpec(table, "metrics.val/acc %", 0).get(1), 0.95);
});

test("the tuner's state stands before MLflow's status; running runs have a duration", () => {
    const table = makeTable();
    const status = columnSpec(table, "status", 0);
    assert.deepEqual([0, 1, 2, 3].map(status.get), ["finished", "running", "failed", "pruned"]);
    const duration = columnSpec(table, "duration", 10_000);
    assert.deepEqual([0, 1, 2].map(duration.get), [1000, 6000, 500]);
});

test("the columns at first: the study's metrics, those that matter, when; the machine's are left out", () => {
    const table = makeTable();
    const value = { value: 1, step: 0, timestamp: 1 };
    applyMetrics(table, { run_id: "a", latest: { epoch: value, lr: value, "system/cpu": value, cost: value } });
    const metrics = (...leading) => defaultColumnIds(table, orderMetrics(table.metrics.keys(), leading)).filter((id) => id.startsWith("metrics."));
    assert.deepEqual(metrics(), ["metrics.val/acc %", "metrics.loss", "metrics.cost", "metrics.epoch", "metrics.lr"]);
    assert.deepEqual(metrics("system/cpu", "cost").slice(0, 3), ["metrics.system/cpu", "metrics.cost", "metrics.val/acc %"]);
    assert.deepEqual(defaultColumnIds(table).slice(0, 2), ["status", "metrics.val/acc %"]);
    assert.equal(allColumnIds(table).filter((id) => id.startsWith("metrics.")).at(-1), "metrics.system/cpu");
});

test("numbers as Python writes them", () => {
    const cases = [["1e-05", 1e-5], ["-3", -3], [".5", 0.5], ["5.", 5], [" 7 ", 7]];
    for (const [text, value] of cases) assert.equal(parseNumber(text), value);
    for (const text of ["", "nan", "0x10", "1_000", "1 2", "True", "1e", "--1"]) assert.equal(parseNumber(text), undefined, text);
});

test("live events add runs, columns and values", () => {
    const table = makeTable();
    applyRun(table, { run_id: "f", experiment_id: "1", name: "new", status: "RUNNING", start_time: 7000, end_time: null, lifecycle_stage: "active", tags: { team: "nlp" } });
    assert.equal(table.ids.length, 6);
    assert.equal(table.tags.get("team")[5], "nlp");
    assert.equal(table.metrics.get("loss").length, 6);
    applyMetrics(table, { run_id: "f", latest: { f1: { value: "NaN", step: 0, timestamp: 1 }, loss: { value: 0.1, step: 3, timestamp: 1 } } });
    assert.ok(Number.isNaN(table.metrics.get("f1")[5]));
    assert.equal(table.metrics.get("loss")[5], 0.1);
    applyParams(table, { run_id: "f", params: { depth: "3" } });
    assert.deepEqual(table.params.get("depth"), [undefined, undefined, undefined, undefined, undefined, "3"]);
});

test("an event with some fields changes only those", () => {
    const table = makeTable();
    applyRun(table, { run_id: "b", experiment_id: "1", status: "FINISHED", end_time: 8000 });
    assert.equal(table.name[1], "bob");
    assert.equal(table.status[1], "FINISHED");
    assert.equal(table.end[1], 8000);
    applyRun(table, { run_id: "a", experiment_id: "1", tags: { team: null } });
    assert.equal(table.tags.get("team")[0], undefined);
    applyRun(table, { run_id: "unknown", experiment_id: "1", tags: { team: "x" } });
    assert.equal(table.ids.length, 5);
    applyMetrics(table, { run_id: "unknown", latest: { loss: { value: 1, step: 0, timestamp: 0 } } });
    assert.equal(table.metrics.get("loss").length, 5);
});

test("columns shown at first: what differs, metrics of the machine left out", () => {
    const table = makeTable();
    table.params.set("same", ["1", "1", "1", "1", "1"]);
    table.metrics.set("system/cpu", [1, 2, 3, 4, 5]);
    const shown = defaultColumnIds(table);
    assert.ok(shown.includes("params.lr") && shown.includes("metrics.loss"));
    assert.ok(!shown.includes("params.same") && !shown.includes("metrics.system/cpu"));
    assert.ok(allColumnIds(table).includes("params.same"));
});
