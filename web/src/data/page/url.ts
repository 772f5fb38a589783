// View state in the address: short readable queries, defaults left out, unknown keys ignored, so that a
// link shows the same picture to everybody and old links stay valid.
import { base } from "../base.ts";

export type ViewValue = string | number | boolean | readonly string[];
export type View = Record<string, ViewValue>;

/// What stays readable in a query; everything else is percent-encoded.
function encode(text: string): string {
    return encodeURIComponent(text).replace(/%(2C|2F|3A|40|24)/g, decodeURIComponent).replace(/%20/g, "+");
}

/// List items are joined by commas; a comma or percent sign in an item is encoded once more.
function encodeItem(item: string): string {
    return item.replace(/[%,]/g, (c) => (c === "," ? "%2C" : "%25"));
}

function equal(a: ViewValue, b: ViewValue | undefined): boolean {
    if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((x, i) => x === b[i]);
    return a === b;
}

function toText(value: ViewValue): string {
    if (Array.isArray(value)) return value.map(encodeItem).join(",");
    if (typeof value === "boolean") return value ? "1" : "0";
    return String(value);
}

function fromText(text: string, sample: ViewValue): ViewValue {
    if (Array.isArray(sample)) return text === "" ? [] : text.split(",").map(decodeItem);
    if (typeof sample === "boolean") return text === "1";
    if (typeof sample === "number") return text !== "" && Number.isFinite(Number(text)) ? Number(text) : sample;
    return text;
}

function decodeItem(item: string): string {
    try {
        return decodeURIComponent(item);
    } catch {
        return item;
    }
}

/// The query (without "?") that differs from `defaults`.
export function writeView<T extends View>(view: T, defaults: T): string {
    return Object.keys(defaults)
        .filter((key) => view[key] !== undefined && !equal(view[key] as ViewValue, defaults[key]))
        .map((key) => `${key}=${encode(toText(view[key] as ViewValue))}`)
        .join("&");
}

/// The view in `query`, each field of the type that its default has.
export function readView<T extends View>(query: string, defaults: T): T {
    const given = new URLSearchParams(query);
    const view: View = {};
    for (const [key, sample] of Object.entries(defaults)) {
        const text = given.get(key);
        view[key] = text === null ? sample : fromText(text, sample);
    }
    return view as T;
}

export type Route =
    | { page: "home" }
    | { page: "experiment"; id: string }
    | { page: "run"; id: string }
    | { page: "study"; name: string }
    | { page: "models"; name: string; version: string }
    | { page: "lost"; path: string };

/// The page at `path`, or at `hash` where that is an address as MLflow's page has them: "#/models/m".
export function parsePath(path: string, hash = ""): Route {
    if (/^#\/(?!experiments\/?$|\?|$)/.test(hash)) return foreignRoute(hash);
    const own = path.startsWith(`${base}/`) ? path.slice(base.length) : path;
    const parts = own.split("/").filter((part) => part !== "").map(decodeItem);
    if (parts.length === 0) return { page: "home" };
    if (parts.length === 2 && parts[0] === "e") return { page: "experiment", id: parts[1]! };
    if (parts.length === 2 && parts[0] === "r") return { page: "run", id: parts[1]! };
    if (parts.length === 2 && (parts[0] === "s" || parts[0] === "studies")) return { page: "study", name: parts[1]! };
    return foreignRoute(path);
}

function foreignRoute(path: string): Route {
    const [found, name = "", version = ""] = /^#?\/models(?:\/([^/?]+))?(?:\/versions\/([^/?]+))?/.exec(path) ?? [];
    return found ? { page: "models", name: decodeItem(name), version: decodeItem(version) } : { page: "lost", path };
}

export const homePath = () => `${base}/`;
export const experimentPath = (id: string) => `${base}/e/${encodeURIComponent(id)}`;
export const runPath = (id: string) => `${base}/r/${encodeURIComponent(id)}`;
export const studyPath = (name: string) => `${base}/s/${encodeURIComponent(name)}`;

/// Our page for an address that MLflow's clients print: "#/experiments/1/runs/0af".
export function fromMlflow(hash: string): string | undefined {
    const [, experiment, run] = /^#\/experiments\/([^/?]+)(?:\/runs\/([^/?]+))?/.exec(hash) ?? [];
    return run ? runPath(run) : experiment && experimentPath(experiment);
}
