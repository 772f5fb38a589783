// Studies of several objectives on the study page: the front as a picture, by pointer and by keyboard, live.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axeFaults, Browser, eventually, live, pixelsOf, TuneServer } from "./support.mjs";

const server = new TuneServer();
const browser = new Browser();
const kStudies = "/api/2.0/tune/studies";
const chart = (page) => page.getByRole("application", { name: /Pareto front/ });
const kChart = 'canvas[aria-label*="Pareto front"]';
const trials = (page) => page.getByRole("grid", { name: "Trials" });

/// A study whose trials end with these values; the third number of two objectives is that of the constraint.
async function seed(name, metric, results, more = {}) {
    await server.call("POST", kStudies, { name, metric, sampler: "random", space: { x: { float: [0, 1] } }, ...more });
    for (const [number, { values, ms }] of results.entries()) {
        await server.tune(`studies/${name}/ask`, { count: 1 });
        await server.tune(`studies/${name}/tell`, { number, values, ...(ms !== undefined && { constraints: { ms } }) });
    }
}

before(async () => {
    await server.start();
    await browser.start(server);
    await seed("front", ["low:min", "high:max"], [
        { values: [1, 1], ms: 10 }, { values: [2, 2], ms: 20 }, { values: [0, 3], ms: 21 }, { values: [2.5, 1.5], ms: 5 }, { values: [3, 4], ms: 5 },
    ], { constraints: [{ name: "ms", max: 20 }] });
    await seed("three", ["a:min", "b:min", "c:max"], [{ values: [1, 4, 1] }, { values: [2, 3, 9] }, { values: [3, 2, 0] }, { values: [4, 4, 0] }]);
});
after(async () => {
    await browser.close();
    await server.close();
});

test("the front stands instead of one best trial, and is the server's", async () => {
    const page = await browser.open("/s/front");
    await page.locator("[data-best]", { hasText: /^3$/ }).waitFor();
    const study = await server.call("GET", `${kStudies}/front`);
    assert.deepEqual(study.best_trials.map((trial) => trial.number), [0, 1, 4]);
    await eventually(() => trials(page).locator(".star").count(), 3);
    assert.equal(await chart(page).getAttribute("aria-label"), "5 trials by low and high; 3 in total are on the Pareto front. Arrow keys move between trials, Enter opens the run.");
    await page.getByRole("columnheader", { name: /Violation/ }).waitFor();
    await page.context().close();
});

test("the line, its trials and those that break a constraint are drawn in every theme", async () => {
    for (const theme of ["light", "dark"]) {
        const page = await browser.open("/s/front", { theme });
        await page.waitForFunction((selector) => document.querySelector(selector)?.width > 300, kChart);
        // The staircase goes from the lower left to the right edge: longer than the picture is wide.
        await eventually(async () => (await pixelsOf(page, kChart, "--best")) > 1500, true, `the line in ${theme}`);
        await eventually(async () => (await pixelsOf(page, kChart, "--infeasible")) > 10, true, `a triangle in ${theme}`);
        await eventually(async () => (await pixelsOf(page, kChart, "--complete")) < 100, true, `one beaten trial in ${theme}`);
        assert.deepEqual(await axeFaults(page), [], theme);
        await page.context().close();
    }
});

test("by keyboard: along the front, through all trials, and into the run", async () => {
    const page = await browser.open("/s/front");
    await chart(page).focus();
    const tip = page.locator("#front").locator("xpath=ancestor::section").locator("[role=status] .tip");
    const at = async (key, text) => {
        await page.keyboard.press(key);
        await tip.filter({ hasText: text }).waitFor();
    };
    await at("ArrowUp", /Trial 0 front/);
    await at("ArrowUp", /Trial 1 front/);
    await at("ArrowUp", /Trial 4 front/);
    await at("ArrowUp", /Trial 4 front/);
    await at("ArrowLeft", /Trial 3 complete/);
    await at("Home", /Trial 2 infeasible.*low0.*high3.*beyond its bounds by1/);
    await at("End", /Trial 4/);
    await page.keyboard.press("Escape");
    await tip.waitFor({ state: "detached" });
    await at("ArrowDown", /Trial 4/);
    await page.keyboard.press("Enter");
    const run = (await server.call("GET", `${kStudies}/front/trials/4`)).run_id;
    await page.waitForURL(`**/r/${run}`);
    await page.context().close();
});

test("a key counts from the moment on that the picture is there", async () => {
    const script = `new MutationObserver((_, observer) => {
        const picture = document.querySelector('${kChart}');
        if (!picture) return;
        observer.disconnect();
        setTimeout(() => {
            picture.focus();
            picture.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
        });
    }).observe(document, { childList: true, subtree: true });`;
    const page = await browser.open("/s/front", { script });
    await page.locator(".tip", { hasText: "Trial 2 " }).waitFor();
    await page.context().close();
});

test("by pointer: a trial says what it is, and a click opens its run", async () => {
    const page = await browser.open("/s/front");
    const tip = page.locator(".tip");
    await chart(page).focus();
    await page.keyboard.press("Home");
    const places = [];
    for (const number of [2, 0, 1, 3, 4]) { // by the objective across
        await tip.filter({ hasText: `Trial ${number} ` }).waitFor();
        // The box stands 12 px beside its trial's mark.
        const place = await tip.evaluate((box) => {
            const { left, right, top } = box.style;
            return { x: left ? parseFloat(left) - 12 : box.offsetParent.clientWidth - parseFloat(right) + 12, y: parseFloat(top), name: box.querySelector("b").textContent };
        });
        places.push(place);
        await page.keyboard.press("ArrowRight");
    }
    const box = await chart(page).boundingBox();
    for (const { x, y, name } of places) {
        await page.mouse.move(box.x + x + 3, box.y + y - 3);
        await tip.filter({ hasText: new RegExp(`^${name} `) }).waitFor();
    }
    await page.mouse.click(box.x + places[3].x, box.y + places[3].y);
    const run = (await server.call("GET", `${kStudies}/front/trials/3`)).run_id;
    await page.waitForURL(`**/r/${run}`);
    await page.context().close();
});

test("of three objectives one chooses two, and the address keeps them", async () => {
    const page = await browser.open("/s/three");
    await page.locator("[data-best]", { hasText: /^3$/ }).waitFor();
    await page.getByLabel("across").selectOption("c");
    await page.getByRole("application", { name: /^4 trials by c and b/ }).waitFor();
    await page.getByLabel("up").selectOption("c"); // swapped, never against itself
    await page.getByRole("application", { name: /^4 trials by b and c/ }).waitFor();
    await page.waitForURL(/x=b&y=c/);
    await page.reload();
    await page.getByRole("application", { name: /^4 trials by b and c/ }).waitFor();
    await page.getByRole("combobox", { name: "objective" }).selectOption("c");
    await page.getByRole("application", { name: /^4 trials of c\. Best so far 9\./ }).waitFor();
    await page.getByRole("img", { name: /Parallel coordinates of 4 trials over x, a, b, c/ }).waitFor();
    assert.equal(await page.getByRole("heading", { name: /Reported values/ }).count(), 0, "curves are the first objective's");
    await page.goBack();
    await page.getByRole("application", { name: /^4 trials of a\. Best so far 1\./ }).waitFor();
    await page.context().close();
});

test("a running trial appears with its values so far, then joins the front", async () => {
    const page = await browser.open("/s/front");
    await live(page);
    await page.locator("[data-best]", { hasText: /^3$/ }).waitFor();
    const { number } = (await server.tune("studies/front/ask", { count: 1 })).trials[0];
    await page.locator('[data-count="running"]', { hasText: "1" }).waitFor();
    for (const [metric, value] of [["low", 0.5], ["high", 5], ["ms", 1]])
        await server.tune("studies/front/report", { number, metric, step: 0, value });
    await page.getByRole("application", { name: /^6 trials by low and high; 3 in total/ }).waitFor();
    await server.tune("studies/front/tell", { number, values: [0.5, 5], constraints: { ms: 1 } });
    // Better than all others in both.
    await page.getByRole("application", { name: /^6 trials by low and high; 1 in total/ }).waitFor();
    await page.locator("[data-best]", { hasText: /^1$/ }).waitFor();
    await page.context().close();
});

test("nothing was written to the console and no other host was asked", () => {
    assert.deepEqual(browser.faults, []);
});
