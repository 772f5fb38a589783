import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { number, duration, ago, bytes, count, paramText } = await load("data/format.ts");

test("numbers have four significant digits", () => {
    const cases = [
        [0.0316227766, "0.03162"], [1797, "1,797"], [123456.789, "123,457"], [0.5, "0.5"], [2.5e-7, "2.5e-7"], [1e-5, "1e-5"],
        [12345678, "1.235e7"], [-0.25, "-0.25"], [0, "0"], [NaN, "NaN"], [Infinity, "∞"], [-Infinity, "−∞"],
        [1.7976931348623157e308, "∞"], [-1.7976931348623157e308, "−∞"], [0.99996, "1"], [100.04, "100"], [9999.6, "10,000"],
    ];
    for (const [value, text] of cases) assert.equal(number(value), text, String(value));
});

test("durations", () => {
    const cases = [[0, "0 ms"], [999, "999 ms"], [1500, "1.5 s"], [59000, "59 s"], [185000, "3 min 5 s"], [3600e3, "1 h"], [26 * 3600e3, "1 d 2 h"], [NaN, "–"], [-5, "–"]];
    for (const [ms, text] of cases) assert.equal(duration(ms), text);
});

test("times ago", () => {
    const now = 1_800_000_000_000;
    assert.equal(ago(now - 2000, now), "now");
    assert.equal(ago(now + 60_000, now), "now");
    assert.equal(ago(now - 300_000, now), "5 min ago");
    assert.equal(ago(now - 3 * 86400e3, now), "3 d ago");
    assert.match(ago(now - 400 * 86400e3, now), /^\d{4}-\d\d-\d\d$/);
    assert.equal(ago(0, now), "–");
});

test("sizes, counts, parameters", () => {
    assert.deepEqual([0, 999, 1000, 15_400, 999_600, 3_400_000_000].map(bytes), ["0 B", "999 B", "1.0 kB", "15 kB", "1.0 MB", "3.4 GB"]);
    assert.equal(count(1, "run"), "1 run");
    assert.equal(count(2000, "study", "studies"), "2,000 studies");
    assert.deepEqual([0.001, "adamw", true, [0.9, 0.999], null].map(paramText), ["0.001", "adamw", "true", "[0.9,0.999]", "–"]);
});
