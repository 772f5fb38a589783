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

const uplotSource = path.join(here, "node_modules/uplot/dist/uPlot.iife.min.js");
/// uPlot's own minified form is 1 kB smaller (gzipped) than what esbuild makes of its source: it stands above the bundle
/// as it is.
const smallestUplot = {
    name: "smallest-uplot",
    setup(build) {
        build.onLoad({ filter: /[\\/]uPlot\.esm\.js$/ }, () => ({ contents: "export default uPlot;" }));
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
        entryNames: minify ? "[name].[hash]" : "[name]",
        logLevel: "warning",
    };
}

/// The files of the page, by name.
async function pageFiles(minify) {
    const files = new Map();
    const build = async (entryPoints, define = {}, more = {}) => {
        const result = await esbuild.build({ ...bundle(minify, entryPoints, define), ...more });
        for (const file of result.outputFiles) files.set(path.basename(file.path), Buffer.from(file.contents));
    };
    const named = (extension) => [...files.keys()].find((name) => name.startsWith("app") && name.endsWith(extension));
    await build({ events: "src/data/live/events_worker.ts" });
    // The page starts the worker by its name, which holds a hash.
    const worker = { EVENTS_WORKER: JSON.stringify(`/${[...files.keys()][0]}`) };
    const uplot = minify && { banner: { js: await readFile(uplotSource, "utf8") }, plugins: [smallestUplot] };
    await build({ app: "src/app.tsx" }, worker, uplot);
    const icon = await readFile(path.join(here, "src/icon.svg"));
    const iconName = `icon.${createHash("sha256").update(icon).digest("hex").slice(0, 8)}.svg`;
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
