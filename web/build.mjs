// Bundles the page with esbuild and, for the C++ build, writes what embeds it.
//
//   node build.mjs                  web/dist: index.html, app.<hash>.js, app.<hash>.css
//   node build.mjs --out DIR        the same into DIR
//   node build.mjs --embed DIR      the same into DIR/page, and DIR/asset_table.inc + DIR/asset_bytes.S
//   node build.mjs --watch [--api URL] [--port N]   builds on each change and serves; /api goes to URL
//
// Fails when JavaScript and CSS together are over 80 kB gzipped.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";
import { minify as terser } from "terser";

const here = path.dirname(fileURLToPath(import.meta.url));
const kGzipBytesMax = 80_000;

const kTypes = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
};

function options(argv) {
    const read = (name) => {
        const at = argv.indexOf(name);
        return at < 0 ? undefined : argv[at + 1];
    };
    return {
        embed: read("--embed"),
        out: read("--out"),
        watch: argv.includes("--watch"),
        api: read("--api") ?? "http://127.0.0.1:5000",
        port: Number(read("--port") ?? 5173),
    };
}

/// What uPlot hangs on its default export and the page does not use: other shapes of lines, and helpers. Without these
/// lines esbuild leaves out the functions behind them.
const kUnusedOfUplot = /^\s*\(?(paths\.(stepped|bars|spline)|uPlot\.(assign|fmtNum|rangeAsinh|orient|join|fmtDate|tzDate|addGap|clipGaps))\s*=/;
const smallUplot = {
    name: "small-uplot",
    setup(build) {
        build.onLoad({ filter: /[\\/]uPlot\.esm\.js$/ }, async ({ path: file }) => {
            const lines = (await readFile(file, "utf8")).split("\n");
            return { contents: lines.filter((line) => !kUnusedOfUplot.test(line)).join("\n") };
        });
    },
};

function bundle(minify, entryPoints, define) {
    return {
        absWorkingDir: here,
        entryPoints,
        define,
        bundle: true,
        format: "esm",
        target: ["es2022"],
        jsx: "automatic",
        jsxImportSource: "preact",
        minify,
        sourcemap: minify ? false : "inline",
        legalComments: "none",
        write: false,
        outdir: "out",
        logLevel: "warning",
    };
}

/// esbuild bundles, terser minifies once more: 3 kB less, gzipped, than by esbuild alone.
async function smallScript(text) {
    const { code } = await terser(text, { module: true, ecma: 2020, compress: { passes: 2 } });
    return Buffer.from(code);
}

/// "app.js" as "app.1f0c9a3e.js": browsers keep such a file forever, so other content has another name.
function hashedName(file, content) {
    const { name, ext } = path.parse(file);
    return `${name}.${createHash("sha256").update(content).digest("hex").slice(0, 8)}${ext}`;
}

/// The files of the page, by name.
async function pageFiles(minify) {
    const files = new Map();
    const build = async (entryPoints, define = {}, more = {}) => {
        const result = await esbuild.build({ ...bundle(minify, entryPoints, define), ...more });
        for (const file of result.outputFiles) {
            const isScript = minify && file.path.endsWith(".js");
            const content = isScript ? await smallScript(file.text) : Buffer.from(file.contents);
            files.set(minify ? hashedName(file.path, content) : path.basename(file.path), content);
        }
    };
    const named = (extension) => [...files.keys()].find((name) => name.startsWith("app") && name.endsWith(extension));
    await build({ events: "src/data/live/events_worker.ts" });
    // The page starts the worker by its name, which holds a hash.
    const worker = { EVENTS_WORKER: JSON.stringify(`/${[...files.keys()][0]}`) };
    await build({ app: "src/app.tsx" }, worker, { plugins: [smallUplot] });
    const icon = await readFile(path.join(here, "src/icon.svg"));
    const iconName = hashedName("icon.svg", icon);
    files.set(iconName, icon);
    const html = (await readFile(path.join(here, "src/index.html"), "utf8"))
        .replace("app.js", named(".js"))
        .replace("app.css", named(".css"))
        .replace("icon.svg", iconName);
    files.set("index.html", Buffer.from(html));
    return files;
}

function compressed(bytes) {
    const gzip = gzipSync(bytes, { level: 9 });
    return gzip.length < bytes.length ? gzip : Buffer.alloc(0);
}

/// Prints what a first visit loads and refuses to go over the budget.
function checkBudget(files) {
    let total = 0;
    for (const [name, bytes] of files) {
        if (!/\.(js|css)$/.test(name)) continue;
        const size = compressed(bytes).length;
        total += size;
        console.log(`${name}: ${bytes.length} bytes, ${size} gzipped`);
    }
    console.log(`JavaScript + CSS: ${(total / 1000).toFixed(1)} kB gzipped of ${kGzipBytesMax / 1000}`);
    if (total > kGzipBytesMax) throw new Error(`the page is over its budget of ${kGzipBytesMax} bytes gzipped`);
}

async function writePage(directory, files) {
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { recursive: true });
    for (const [name, bytes] of files) await writeFile(path.join(directory, name), bytes);
}

async function embed(directory, files) {
    const page = path.join(directory, "page");
    await writePage(page, files);
    const table = [];
    const bytes = ["    .section .rodata"];
    for (const [index, name] of [...files.keys()].sort().entries()) {
        const content = files.get(name);
        const gzip = compressed(content);
        await writeFile(path.join(page, `${name}.gz`), gzip);
        const etag = createHash("sha256").update(content).digest("hex").slice(0, 16);
        const immutable = name !== "index.html";
        table.push(`TUNE_WEB_ASSET(${index}, "/${name}", "${kTypes[path.extname(name)]}", "\\"${etag}\\"", ${immutable})`);
        const symbol = `tune_web_asset_${index}`;
        bytes.push(
            `    .globl ${symbol}_begin, ${symbol}_end, ${symbol}_gz_end`,
            `${symbol}_begin:`,
            `    .incbin "${path.join(page, name)}"`,
            `${symbol}_end:`,
            `    .incbin "${path.join(page, `${name}.gz`)}"`,
            `${symbol}_gz_end:`,
        );
    }
    bytes.push('    .section .note.GNU-stack,"",%progbits');
    await writeFile(path.join(directory, "asset_table.inc"), `${table.join("\n")}\n`);
    await writeFile(path.join(directory, "asset_bytes.S"), `${bytes.join("\n")}\n`);
}

/// A development server: the page from memory, rebuilt for each load of index.html, the rest from `api`.
function serve({ api, port }) {
    let files = new Map();
    const target = new URL(api);
    createServer(async (incoming, answer) => {
        const url = new URL(incoming.url, "http://local");
        if (/^\/(api|ajax-api|health|version)/.test(url.pathname)) {
            const headers = { ...incoming.headers, host: target.host };
            delete headers.origin;
            const upstream = request(
                { host: target.hostname, port: target.port, path: incoming.url, method: incoming.method, headers },
                (reply) => {
                    answer.writeHead(reply.statusCode, reply.headers);
                    reply.pipe(answer);
                    answer.on("close", () => reply.destroy());
                },
            );
            upstream.on("error", () => answer.writeHead(502).end());
            incoming.pipe(upstream);
            return;
        }
        const name = path.basename(url.pathname);
        if (!files.has(name)) {
            try {
                files = await pageFiles(false);
            } catch (error) {
                answer.writeHead(500, { "content-type": "text/plain" }).end(String(error));
                return;
            }
        }
        const found = files.has(name) ? name : "index.html";
        answer.writeHead(200, { "content-type": kTypes[path.extname(found)], "cache-control": "no-store" });
        answer.end(files.get(found));
        if (found === "index.html") files = new Map([...files].filter(([key]) => key !== "index.html"));
    }).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/ (API: ${api})`));
}

const chosen = options(process.argv.slice(2));
if (chosen.watch) {
    serve(chosen);
} else {
    const files = await pageFiles(true);
    checkBudget(files);
    if (chosen.embed) await embed(path.resolve(chosen.embed), files);
    else await writePage(path.resolve(here, chosen.out ?? "dist"), files);
}
