// Measures the page's budgets against the real server in Chromium; one JSON line a figure on stdout.
//
//   TUNE_BIN_DIR=build/release/bin node web/measure.mjs [--runs 100000] [--points 1000000] [--trials 10000]
import { Browser, TuneServer } from "../tests/web/support.mjs";

const argument = (name, otherwise) => {
    const at = process.argv.indexOf(name);
    return at < 0 ? otherwise : Number(process.argv[at + 1]);
};
const kRuns = argument("--runs", 100_000);
const kPoints = argument("--points", 1_000_000);
const kTrials = argument("--trials", 10_000);
const kRounds = 5;

const say = (name, value, unit, target) => console.log(JSON.stringify({ name, value: Number(value.toPrecision(3)), unit, better: "lower", target }));
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/// Runs `work(i)` for i < count, `width` at a time.
async function all(count, width, work) {
    let next = 0;
    const lane = async () => {
        while (next < count) await work(next++);
    };
    await Promise.all(Array.from({ length: width }, lane));
}

async function seedRuns(server, count) {
    const id = await server.experiment(`runs-${count}`);
    await all(count, 48, async (i) => {
        const metrics = Array.from({ length: 5 }, (_, k) => [`m${k}`, Math.sin(i * (k + 1)), 0]);
        await server.run(id, `run-${i}`, { params: { lr: 10 ** -(1 + (i % 5)), width: 32 << i % 4, seed: i, optimizer: i % 2 ? "adamw" : "sgd", dropout: (i % 10) / 10 }, metrics });
    });
    return id;
}

async function seedPoints(server, count) {
    const { id } = await server.run(await server.experiment("points"), "long");
    await all(count / 1000, 8, (b) => server.log(id, Array.from({ length: 1000 }, (_, i) => ["loss", Math.exp(-b / 300) + Math.random() * 0.1, b * 1000 + i])));
    return id;
}

async function seedTrials(server, count) {
    const space = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`p${i}`, { float: [0, 1] }]));
    await server.tune("studies", { name: "trials", metric: { name: "loss", goal: "min" }, space, sampler: { type: "random", seed: 1 }, budget: { trials: count } });
    for (let done = 0; done < count; done += 100) {
        const { trials } = await server.tune("studies/trials/ask", { count: Math.min(100, count - done) });
        await Promise.all(trials.map((t) => server.tune("studies/trials/tell", { number: t.number, attempt: t.attempt, value: t.params.p0 ** 2 + t.params.p1 })));
    }
}

/// Milliseconds from the start of navigation until `selector` is there, on a fresh page each time.
async function timeOpen(browser, route, selector, rounds = kRounds) {
    const times = [];
    for (let i = 0; i < rounds; ++i) {
        const page = await browser.open(route);
        page.setDefaultTimeout(60_000);
        await page.locator(selector).first().waitFor();
        times.push(await page.evaluate(() => performance.now()));
        await page.context().close();
    }
    return median(times);
}

/// Milliseconds from `act` (run in the page) until two frames later: what the user waits for.
const timeInPage = (page, act) =>
    page.evaluate(async (source) => {
        const frame = () => new Promise((done) => requestAnimationFrame(done));
        const start = performance.now();
        await new Function(`return (${source})()`)();
        await frame();
        await frame();
        return performance.now() - start;
    }, act.toString());

async function measureTable(browser, id, count) {
    const label = `${count.toLocaleString("en-US")} runs`;
    say(`runs table usable, ${label}`, await timeOpen(browser, `/e/${id}?charts=0`, "[role=grid] [role=row].data"), "ms", count > 1000 ? 1000 : 500);
    const page = await browser.open(`/e/${id}?charts=0`);
    page.setDefaultTimeout(60_000);
    await page.locator("[role=grid] [role=row].data").first().waitFor();
    say(`sort by a metric, ${label}`, await timeInPage(page, () => [...document.querySelectorAll(".headers button")].find((b) => b.textContent.startsWith("m0")).click()), "ms", 100);
    const filter = () => {
        const box = document.querySelector("[data-main-filter]");
        box.value = "metrics.m1 > 0.5 AND params.optimizer = 'adamw'";
        box.dispatchEvent(new Event("input", { bubbles: true }));
    };
    say(`filter, ${label}`, await timeInPage(page, filter), "ms", 100);
    const frames = await page.evaluate(async () => {
        const grid = document.querySelector("[role=grid]");
        const times = [];
        let before = performance.now();
        for (let i = 0; i < 120; ++i) {
            grid.scrollTop += 900;
            await new Promise((done) => requestAnimationFrame(done));
            const now = performance.now();
            times.push(now - before);
            before = now;
        }
        times.sort((a, b) => a - b);
        return { p95: times[Math.floor(times.length * 0.95)], rows: document.querySelectorAll("[role=row].data").length, heap: performance.memory.usedJSHeapSize / 1e6 };
    });
    say(`scroll, p95 frame, ${label}`, frames.p95, "ms", 20);
    say(`rows in the document, ${label}`, frames.rows, "rows", 60);
    say(`heap, ${label}`, frames.heap, "MB", 150);
    await page.context().close();
}

async function measureSeries(server, browser, run) {
    const times = [];
    for (let i = 0; i < 20; ++i) {
        const start = performance.now();
        await server.call("GET", `/api/ui/series?run_ids=${run}&metric=loss&buckets=800`);
        times.push(performance.now() - start);
    }
    say(`series of ${kPoints.toLocaleString("en-US")} points, 800 buckets, server, median`, median(times), "ms", 20);
    say(`run page with that chart drawn`, await timeOpen(browser, `/r/${run}`, ".uplot canvas"), "ms", 500);
}

async function measureLive(server, browser) {
    const { id } = await server.run(await server.experiment("live"), "live", { metrics: [["loss", 1, 0]] });
    const page = await browser.open(`/r/${id}`);
    await page.locator('[data-live="live"]').waitFor();
    const times = [];
    for (let step = 1; step <= 20; ++step) {
        const seen = page.locator('[data-metric-value="loss"]').filter({ hasText: new RegExp(`^${step}\\.5$`) }).waitFor();
        const start = performance.now();
        await server.log(id, [["loss", step + 0.5, step]]);
        await seen;
        times.push(performance.now() - start);
    }
    say("point logged to drawn, median", median(times), "ms", 500);
    await page.context().close();
}

const server = await new TuneServer().start();
const browser = await new Browser().start(server);
try {
    await measureTable(browser, await seedRuns(server, 1000), 1000);
    await measureLive(server, browser);
    await measureSeries(server, browser, await seedPoints(server, kPoints));
    await seedTrials(server, kTrials);
    say(`study page drawn, ${kTrials.toLocaleString("en-US")} trials x 10 axes`, await timeOpen(browser, "/s/trials", 'canvas[aria-label^="Parallel"]', 3), "ms", 1500);
    await measureTable(browser, await seedRuns(server, kRuns), kRuns);
} finally {
    await browser.close();
    await server.close();
}
