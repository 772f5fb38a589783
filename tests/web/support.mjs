// What the browser tests share: the real server, its REST API, and Debian's Chromium with eyes on everything
// that must not happen (errors in the console, requests to other hosts).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";

const here = path.dirname(fileURLToPath(import.meta.url));
const require = createRequire(path.join(here, "../../web/package.json"));
const { chromium } = require("playwright-core");

const binaries = process.env.TUNE_BIN_DIR ?? path.join(here, "../../build/release/bin");

/// The JSON that the server prints when it listens, with its address; the pipe is emptied for as long as it is open.
function readStart(stdout) {
    let text = "";
    return new Promise((resolve) => {
        stdout.on("data", (piece) => {
            text += piece;
            if (text.endsWith("}\n")) resolve(JSON.parse(text));
        });
    });
}

/// `tune server` on a free port with its own data directory.
export class TuneServer {
    data = mkdtempSync(path.join(os.tmpdir(), "tune-web-"));

    /// `port` 0 takes a free one; a restart takes the same again.
    async start(port = 0, more = []) {
        const words = ["server", "--port", String(port), "--data", this.data, "--json", ...more];
        this.process = spawn(path.join(binaries, "tune"), words, { stdio: ["ignore", "pipe", "pipe"] });
        let complaint = "";
        this.process.stderr.on("data", (text) => (complaint += text));
        const { url, page } = await Promise.race([
            readStart(this.process.stdout),
            once(this.process, "exit").then(() => Promise.reject(new Error(`tune server ended: ${complaint}`))),
        ]);
        this.url = url;
        this.page = page; // opens the page once, and gives the browser a cookie
        this.token = (await readFile(path.join(this.data, "token"), "utf8")).trim();
        this.port = Number(new URL(this.url).port);
        return this;
    }

    async stop(signal = "SIGTERM") {
        if (this.process.exitCode !== null || this.process.signalCode !== null) return;
        const ended = once(this.process, "exit");
        this.process.kill(signal);
        await ended;
    }

    async close() {
        await this.stop();
        rmSync(this.data, { recursive: true, force: true });
    }

    async call(method, route, body) {
        const answer = await fetch(this.url + route, {
            method,
            headers: { "content-type": "application/json", authorization: `Bearer ${this.token}` },
            body: body === undefined ? undefined : JSON.stringify(body),
        });
        const text = await answer.text();
        if (!answer.ok) throw new Error(`${method} ${route}: ${answer.status} ${text}`);
        return text ? JSON.parse(text) : {};
    }
    mlflow(route, body) {
        return this.call("POST", `/api/2.0/mlflow/${route}`, body);
    }
    tune(route, body) {
        return this.call("POST", `/api/2.0/tune/${route}`, body);
    }

    async experiment(name) {
        return (await this.mlflow("experiments/create", { name })).experiment_id;
    }
    async run(experimentId, name, { params = {}, metrics = [], tags = {}, status } = {}) {
        const pairs = (object) => Object.entries(object).map(([key, value]) => ({ key, value: String(value) }));
        const created = await this.mlflow("runs/create", { experiment_id: experimentId, run_name: name, start_time: Date.now(), tags: pairs(tags) });
        const { run_id: id, artifact_uri: uri } = created.run.info;
        await this.log(id, metrics, pairs(params));
        if (status) await this.mlflow("runs/update", { run_id: id, status, end_time: Date.now() });
        return { id, uri };
    }
    /// `metrics`: [key, value, step] each.
    log(runId, metrics, params = []) {
        const timestamp = Date.now();
        return this.mlflow("runs/log-batch", { run_id: runId, params, metrics: metrics.map(([key, value, step]) => ({ key, value, step, timestamp })) });
    }
    /// The cookie that the printed address gives a browser, for every new profile of one.
    async cookie() {
        this.cookieText ??= (await fetch(this.page, { redirect: "manual" })).headers.get("set-cookie").split(";")[0];
        const [name, value] = this.cookieText.split("=");
        return { name, value, url: this.url, httpOnly: true, sameSite: "Strict" };
    }

    async artifact(run, name, content) {
        const root = run.uri.replace(/^mlflow-artifacts:\/*/, "");
        const route = `/api/2.0/mlflow-artifacts/artifacts/${root}/${name}`;
        const answer = await fetch(this.url + route, { method: "PUT", body: content });
        if (!answer.ok) throw new Error(`PUT ${route}: ${answer.status} ${await answer.text()}`);
    }
}

const kPatience_ms = 60_000; // only ever waited for by a test that fails

const kFlags = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--force-color-profile=srgb",
    // No name but loopback resolves, so a request elsewhere fails even where our hooks do not see it.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

/// A browser with a fresh profile. `open` gives pages whose faults are collected in `faults`.
export class Browser {
    faults = [];

    async start(server) {
        this.server = server;
        this.browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: kFlags, timeout: 120_000 });
        return this;
    }

    /// `script` runs in the page before its own. A page that `isGuest` has not been opened by the printed address.
    async open(route, { theme = "light", width = 1440, height = 900, reducedMotion = "reduce", script, isGuest = false } = {}) {
        const context = await this.browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion });
        if (!isGuest) await context.addCookies([await this.server.cookie()]);
        const page = await context.newPage();
        context.on("request", (request) => {
            const url = request.url();
            if (!url.startsWith(this.server.url) && !/^(data|blob):/.test(url)) this.faults.push(`request to ${url}`);
        });
        page.on("console", (message) => {
            if (message.type() === "error" || message.type() === "warning") this.faults.push(`console: ${message.text()}`);
        });
        page.on("pageerror", (error) => this.faults.push(`error: ${error.stack}`));
        page.setDefaultTimeout(kPatience_ms);
        if (script) await page.addInitScript(script);
        await page.goto(this.server.url + route);
        return page;
    }

    async close() {
        await this.browser.close();
    }
}

export async function live(page) {
    await page.locator('[data-live="live"]').waitFor();
}

/// Reads until the answer is the expected one: a picture of what was asked for comes after the mark that it was asked for.
export async function eventually(read, expected, what) {
    const deadline = Date.now() + kPatience_ms;
    for (;;) {
        const got = await read();
        if (isDeepStrictEqual(got, expected)) return;
        if (Date.now() > deadline) assert.deepEqual(got, expected, what);
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

/// Faults that axe finds (WCAG 2.2 A and AA), as text.
export async function axeFaults(page) {
    if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(await readFile(require.resolve("axe-core/axe.min.js"), "utf8"));
    const result = await page.evaluate(() =>
        window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
    );
    return result.violations.flatMap((fault) => fault.nodes.map((node) => `${fault.id}: ${node.html.slice(0, 160)} (${node.failureSummary?.split("\n").slice(1, 3).join(" ")})`));
}

/// How many pixels of the canvas have about the colour of a token such as "--pruned".
export function pixelsOf(page, selector, token) {
    return page.locator(selector).first().evaluate((canvas, name) => {
        const probe = document.createElement("span");
        probe.style.color = `var(${name})`;
        document.body.append(probe);
        const wanted = getComputedStyle(probe).color.match(/\d+/g).map(Number);
        probe.remove();
        const copy = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        copy.canvas.width = canvas.width;
        copy.canvas.height = canvas.height;
        copy.drawImage(canvas, 0, 0);
        const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
        let found = 0;
        for (let i = 0; i < data.length; i += 4)
            if (data[i + 3] > 120 && [0, 1, 2].every((c) => Math.abs(data[i + c] - wanted[c]) < 24)) ++found;
        return found;
    }, token);
}

/// A study as a client drives it: ask, report, tell. Trials whose number is in `pruned` stop after two reports.
export async function seedStudy(server, name, count, pruned = [], more = {}) {
    await server.tune("studies", {
        name,
        metric: { name: "val_loss", goal: "min" },
        space: { lr: { float: [1e-4, 1e-1], log: true }, width: { ordinal: [32, 64, 128] }, optimizer: { choice: ["sgd", "adamw"] }, momentum: { float: [0, 0.99], when: { optimizer: "sgd" } } },
        sampler: { type: "random", seed: 7 },
        budget: { trials: 500 },
        ...more,
    });
    for (let i = 0; i < count; ++i) await runTrial(server, name, pruned.includes(i));
}

export async function runTrial(server, study, isPruned = false) {
    const { trials } = await server.tune(`studies/${study}/ask`, { count: 1 });
    const { number, attempt, params } = trials[0];
    const floor = Math.abs(Math.log10(params.lr) + 2.2) * 0.2 + 0.05;
    const steps = isPruned ? 2 : 6;
    const value = (step) => floor + 2 * Math.exp(-step) + (isPruned ? 0.8 : 0);
    for (let step = 0; step < steps; ++step) await server.tune(`studies/${study}/report`, { number, attempt, step, value: value(step) });
    await server.tune(`studies/${study}/tell`, isPruned ? { number, attempt, state: "pruned", reason: "worse than the median" } : { number, attempt, value: value(steps - 1) });
    return trials[0];
}
