// What the charts read: one request for all that is opened at once, live points on top, out-of-date answers dropped.
import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { SeriesBook } = await load("data/curves/series_book.ts");

/// Answers each request of the book by `points` of a metric, in the order in which `release` is called.
function fakeServer(points) {
    const requests = [];
    globalThis.fetch = (url) =>
        new Promise((resolve) => {
            const query = new URL(url, "http://server").searchParams;
            const metrics = query.getAll("metric");
            const body = {
                metrics: metrics.map((metric) => ({
                    metric,
                    series: query.get("run_ids").split(",").map((run_id) => {
                        const last = points[metric] ?? [];
                        return { run_id, count: last.length, nan_count: 0, step: last.map((_, i) => i), time: last.map((_, i) => i), last };
                    }),
                })),
            };
            requests.push({ metrics, runs: query.get("run_ids"), release: () => resolve(new Response(JSON.stringify(body))) });
        });
    return requests;
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("metrics opened together are read by one request, many by several", async () => {
    const requests = fakeServer({});
    const book = new SeriesBook();
    book.setRuns(["a"]);
    for (let i = 0; i < 45; ++i) book.open(`m${i}`);
    await settled();
    assert.deepEqual(requests.map(({ metrics }) => metrics.length), [20, 20, 5]);
});

test("a metric of one point is single until a second one arrives", async () => {
    const requests = fakeServer({ once: [7], often: [3, 2, 1] });
    const book = new SeriesBook();
    book.setRuns(["a"]);
    assert.equal(book.isSingle("a", "once", true), true);
    assert.equal(book.isSingle("a", "often", true), true, "a guess until the server has answered");
    assert.equal(book.isSingle("a", "later", false), false, "and no request for what is surely a curve");
    await settled();
    assert.deepEqual(requests.map(({ metrics }) => metrics), [["once", "often"]]);
    requests[0].release();
    await settled();
    assert.deepEqual([book.isSingle("a", "once", true), book.isSingle("a", "often", true)], [true, false]);
    book.append("a", "once", 1, 10, 8);
    assert.equal(book.isSingle("a", "once", true), false);
});

test("live points that come during a read are kept; an answer for other runs is dropped", async () => {
    const requests = fakeServer({ loss: [3, 2] });
    const book = new SeriesBook();
    book.setRuns(["a"]);
    book.open("loss");
    await settled();
    book.append("a", "loss", 2, 20, 1);
    book.setRuns(["a", "b"]);
    book.open("loss");
    await settled();
    book.append("b", "loss", 2, 20, 0.5);
    requests[0].release();
    await settled();
    assert.equal(book.open("loss").isLoaded, false);
    requests[1].release();
    await settled();
    const { runs, isLoaded } = book.open("loss");
    assert.equal(isLoaded, true);
    assert.deepEqual([...runs].map(([id, series]) => [id, series.last]), [["a", [3, 2]], ["b", [3, 2, 0.5]]]);
});
