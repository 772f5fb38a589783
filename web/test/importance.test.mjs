import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { ImportanceStore, kImportanceTrialsMin, rankingOf } = await load("data/study/importance_store.ts");

/// A server whose responses are given one by one.
function server() {
    const requests = [];
    const read = (url) => new Promise((resolve, reject) => requests.push({ url, resolve, reject }));
    return { requests, read };
}

const answer = (name, trials = 20) => ({ metric: "loss", trials, importances: [{ name, share: 1, value: 3 }] });
/// Until all that is ready has run: timers of 0 ms, as the stores below have, run in the order in which they were set.
async function settled() {
    for (let turn = 0; turn < 5; ++turn) await new Promise((resolve) => setTimeout(resolve, 0));
}

test("a ranking has the server's shares, and none of too few trials", () => {
    assert.deepEqual(rankingOf(answer("lr")), [{ name: "lr", share: 1 }]);
    assert.deepEqual(rankingOf(answer("lr", kImportanceTrialsMin - 1)), []);
});

test("importance is read when trials end, one request at a time", async () => {
    const { requests, read } = server();
    const store = new ImportanceStore("a/b", read, 0);
    store.ask("loss", kImportanceTrialsMin - 1, "");
    assert.equal(requests.length, 0, "too few trials");
    for (const finished of [10, 11, 12]) store.ask("loss", finished, "");
    assert.deepEqual(requests.map(({ url }) => url), ["/api/2.0/tune/studies/a%2Fb/importance?metric=loss"]);
    requests[0].resolve(answer("lr"));
    await settled();
    assert.equal(store.ranking.value[0].name, "lr");
    assert.equal(requests.length, 2, "one more for the trials that ended meanwhile");
    requests[1].resolve(answer("width"));
    await settled();
    assert.equal(store.ranking.value[0].name, "width");
    store.ask("loss", 12, "");
    assert.equal(requests.length, 2, "nothing has changed");
});

test("another objective is not shown the importances of the one before", async () => {
    const { requests, read } = server();
    const store = new ImportanceStore("s", read, 0);
    store.ask("loss", 10, "");
    store.ask("latency", 10, "");
    requests[0].resolve(answer("lr"));
    await settled();
    assert.deepEqual(store.ranking.value, []);
    assert.ok(requests[1].url.endsWith("?metric=latency"));
    requests[1].resolve(answer("width"));
    await settled();
    assert.equal(store.ranking.value[0].name, "width");
});

test("a failed request keeps the bars and is made again for the next trial", async () => {
    const { requests, read } = server();
    const store = new ImportanceStore("s", read, 0);
    store.ask("loss", 10, "");
    requests[0].resolve(answer("lr"));
    await settled();
    store.ask("loss", 11, "");
    requests[1].reject(new Error("gone"));
    await settled();
    assert.equal(store.ranking.value[0].name, "lr");
    store.ask("loss", 12, "");
    assert.equal(requests.length, 3);
    store.close();
});
