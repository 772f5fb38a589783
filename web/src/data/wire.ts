// The JSON shapes that the server answers, and the one way to ask for them.
import { base } from "./base.ts";

/// A number that JSON cannot hold travels as a string.
export type WireNumber = number | "NaN" | "Infinity" | "-Infinity" | null;

export function fromWire(value: WireNumber | undefined): number {
    if (typeof value === "number") return value;
    if (value === "Infinity") return Infinity;
    if (value === "-Infinity") return -Infinity;
    return NaN;
}

export interface WireColumn<T> {
    rows: number[];
    values: T[];
}
export type WireColumns<T> = Record<string, (T | null)[] | WireColumn<T>>;

export interface ExperimentRow {
    experiment_id: string;
    name: string;
    runs: number;
    running: number;
    created_ms: number;
    last_activity_ms: number;
}

export interface WireRuns {
    experiment: {
        experiment_id: string;
        name: string;
        lifecycle_stage: string;
        artifact_location: string;
        created_ms: number;
        tags: Record<string, string>;
    };
    truncated: boolean;
    count: number;
    attributes: {
        run_id: string[];
        name: string[];
        user: string[];
        status: number[];
        start_ms: number[];
        end_ms: (number | null)[];
        artifact_uri: string[];
        deleted: number[];
    };
    params: WireColumns<string>;
    metrics: WireColumns<WireNumber>;
    tags: WireColumns<string>;
}

export interface WireSeries {
    run_id: string;
    count: number;
    nan_count: number;
    step: number[];
    time: number[];
    last: (number | null)[];
    min?: (number | null)[];
    max?: (number | null)[];
    counts?: number[];
}

export interface WireMetric {
    key: string;
    value: WireNumber;
    timestamp: number | string;
    step: number | string;
}
export interface WirePair {
    key: string;
    value: string;
}
export interface WireRun {
    info: {
        run_id: string;
        experiment_id: string;
        run_name?: string;
        user_id?: string;
        status: string;
        start_time?: number | string;
        end_time?: number | string;
        artifact_uri?: string;
        lifecycle_stage?: string;
    };
    data?: { metrics?: WireMetric[]; params?: WirePair[]; tags?: WirePair[] };
    inputs?: {
        dataset_inputs?: { dataset?: { name?: string; digest?: string; source_type?: string } }[];
    };
}

export interface WireFile {
    path: string;
    is_dir: boolean;
    file_size?: number | string;
}

/// What the server said when it refused, or that it could not be reached.
export class ApiError extends Error {
    constructor(
        message: string,
        /// HTTP status; 0 when there was no answer.
        readonly status: number,
        readonly code = "",
    ) {
        super(message);
    }
}

async function refusal(answer: globalThis.Response): Promise<ApiError> {
    const text = await answer.text();
    try {
        const body = JSON.parse(text) as { message?: string; error_code?: string };
        return new ApiError(body.message ?? text, answer.status, body.error_code);
    } catch {
        return new ApiError(text || `${answer.status} ${answer.statusText}`, answer.status);
    }
}

let hear: (error: ApiError) => void = () => {};

/// `listener` hears of every refusal, before whoever asked does.
export function onRefusal(listener: (error: ApiError) => void): void {
    hear = listener;
}

async function ask(url: string, init: RequestInit): Promise<globalThis.Response> {
    let answer: globalThis.Response;
    try {
        answer = await fetch(url.startsWith(`${base}/`) ? url : base + url, { credentials: "same-origin", ...init });
    } catch (fault) {
        if (init.signal?.aborted) throw fault;
        throw new ApiError("The server is not responding.", 0);
    }
    if (answer.ok) return answer;
    const error = await refusal(answer);
    hear(error);
    throw error;
}

export async function getJson<T>(url: string, signal?: AbortSignal): Promise<T> {
    return (await (await ask(url, { signal })).json()) as T;
}

export async function postJson<T>(url: string, body: unknown): Promise<T> {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return (await (await ask(url, init)).json()) as T;
}

/// DELETE, whose answer says no more than that it was done.
export async function remove(url: string): Promise<void> {
    await ask(url, { method: "DELETE" });
}

/// The file's bytes, from `first` on, at most `countMax` of them; `size` is that of the whole file.
export async function getBytes(
    url: string,
    first: number,
    countMax: number,
    signal?: AbortSignal,
): Promise<{ bytes: Uint8Array; size: number; type: string }> {
    const range = `bytes=${first}-${first + countMax - 1}`;
    // Cached pieces of a growing log would be stale.
    const init = { signal, cache: "no-store" as const, headers: { range } };
    let answer: globalThis.Response;
    try {
        answer = await ask(url, init);
    } catch (fault) {
        // Nothing beyond `first`: an empty or unchanged file.
        if (fault instanceof ApiError && fault.status === 416) return { bytes: new Uint8Array(), size: first, type: "" };
        throw fault;
    }
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const type = answer.headers.get("content-type") ?? "";
    const total = /\/(\d+)$/.exec(answer.headers.get("content-range") ?? "");
    if (answer.status !== 206) return { bytes: bytes.subarray(first, first + countMax), size: bytes.length, type };
    return { bytes, size: total ? Number(total[1]) : first + bytes.length, type };
}

export const mlflow = "/api/2.0/mlflow";
export const tuneApi = "/api/2.0/tune";

/// The address under which the server gives an artifact of a run.
export function artifactUrl(artifactUri: string, path: string): string {
    const root = artifactUri.replace(/^mlflow-artifacts:\/*/, "");
    const parts = `${root}/${path}`.split("/").filter((part) => part !== "");
    return `${base}/api/2.0/mlflow-artifacts/artifacts/${parts.map(encodeURIComponent).join("/")}`;
}
