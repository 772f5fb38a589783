// The histories that the charts of a page show: read on demand, kept up to date by live points.
import { signal, type Signal } from "@preact/signals";
import { appendPoint, decodeSeries, emptySeries, isStale, type Series } from "./series.ts";
import { getJson, type WireNumber, type WireSeries } from "../wire.ts";

export const kBuckets = 400;
/// Metrics in one request: their names must fit into an address.
const kMetricsAtOnce = 20;
/// Time between two reads of one metric that live events ask for.
const kReread_ms = 1000;

interface Entry {
    runs: Map<string, Series>;
    version: Signal<number>;
    error: unknown;
    isLoaded: boolean;
    runKey: string;
    lastRead_ms: number;
    timer: ReturnType<typeof setTimeout> | undefined;
    /// The read under way; undefined: none. What an earlier one brings is out of date.
    reading: symbol | undefined;
    /// Live points that came meanwhile.
    pending: [runId: string, step: number, time: number, value: WireNumber][];
}

function isNewer(series: Series, step: number, time: number): boolean {
    const last = series.step.length - 1;
    return last < 0 || step > series.step[last]! || (step === series.step[last]! && time > series.time[last]!);
}

export class SeriesBook {
    private readonly entries = new Map<string, Entry>();
    private readonly closed = new AbortController();
    private runIds: string[] = [];
    /// Metrics to be read together once the page has said which it draws.
    private queue: string[] = [];

    /// The runs that the charts draw.
    setRuns(runIds: readonly string[]): void {
        this.runIds = [...runIds];
    }

    /// A chart of `metric` is in view: reads what it needs and returns the entry to draw from.
    open(metric: string): { runs: ReadonlyMap<string, Series>; version: number; error: unknown; isLoaded: boolean } {
        const entry = this.entry(metric);
        if (entry.runKey !== this.runIds.join()) this.read(metric, entry);
        return { runs: entry.runs, version: entry.version.value, error: entry.error, isLoaded: entry.isLoaded };
    }

    /// Whether the run has logged `metric` once only; `guess` until the server has said so.
    isSingle(runId: string, metric: string, guess: boolean): boolean {
        if (guess) this.open(metric);
        const entry = this.entries.get(metric);
        const count = entry?.version.value !== undefined && entry.isLoaded ? entry.runs.get(runId)?.count : undefined;
        return count === undefined ? guess : count === 1;
    }

    /// One live point, of a run that is drawn.
    append(runId: string, metric: string, step: number, time: number, value: WireNumber): void {
        const entry = this.entries.get(metric);
        if (!entry || !this.runIds.includes(runId)) return;
        if (entry.reading) {
            entry.pending.push([runId, step, time, value]);
            return;
        }
        const series = entry.runs.get(runId) ?? emptySeries(runId);
        entry.runs.set(runId, series);
        appendPoint(series, step, time, value);
        ++entry.version.value;
        if (isStale(series, kBuckets)) this.refresh(metric);
    }

    /// Something changed in `metric`: read it anew, soon, if it is drawn at all.
    refresh(metric: string): void {
        const entry = this.entries.get(metric);
        if (!entry || entry.timer !== undefined) return;
        const wait = Math.max(0, entry.lastRead_ms + kReread_ms - Date.now());
        entry.timer = setTimeout(() => {
            entry.timer = undefined;
            this.read(metric, entry);
        }, wait);
    }

    refreshAll(): void {
        for (const metric of this.entries.keys()) this.refresh(metric);
    }

    close(): void {
        for (const entry of this.entries.values()) clearTimeout(entry.timer);
        this.closed.abort();
        this.entries.clear();
    }

    private entry(metric: string): Entry {
        let entry = this.entries.get(metric);
        if (!entry) {
            entry = {
                runs: new Map(), version: signal(0), error: undefined, isLoaded: false, runKey: "-", lastRead_ms: 0,
                timer: undefined, reading: undefined, pending: [],
            };
            this.entries.set(metric, entry);
        }
        return entry;
    }

    private read(metric: string, entry: Entry): void {
        entry.runKey = this.runIds.join();
        entry.lastRead_ms = Date.now();
        entry.pending = [];
        entry.reading = undefined;
        if (this.runIds.length === 0) {
            entry.runs = new Map();
            return;
        }
        entry.reading = Symbol();
        if (this.queue.push(metric) === 1) queueMicrotask(() => this.flush());
    }

    private flush(): void {
        const metrics = [...new Set(this.queue)];
        this.queue = [];
        for (let i = 0; i < metrics.length; i += kMetricsAtOnce) void this.request(metrics.slice(i, i + kMetricsAtOnce));
    }

    private async request(metrics: readonly string[]): Promise<void> {
        const entries = metrics.map((metric) => this.entry(metric));
        const readings = entries.map((entry) => entry.reading);
        const names = metrics.map((metric) => `&metric=${encodeURIComponent(metric)}`).join("");
        let answer: { metrics: { series: WireSeries[] }[] } | undefined;
        let error: unknown;
        try {
            answer = await getJson(`/api/ui/series?run_ids=${this.runIds.join()}${names}&buckets=${kBuckets}`, this.closed.signal);
        } catch (fault) {
            if (this.closed.signal.aborted) return;
            error = fault;
        }
        entries.forEach((entry, i) => {
            if (!entry.reading || entry.reading !== readings[i]) return;
            entry.reading = undefined;
            entry.error = error;
            if (answer) this.fill(entry, answer.metrics[i]!.series);
            ++entry.version.value;
        });
    }

    private fill(entry: Entry, series: WireSeries[]): void {
        entry.runs = new Map(series.map((wire) => [wire.run_id, decodeSeries(wire)]));
        entry.isLoaded = true;
        for (const [runId, step, time, value] of entry.pending) {
            const known = entry.runs.get(runId) ?? emptySeries(runId);
            entry.runs.set(runId, known);
            if (isNewer(known, step, time)) appendPoint(known, step, time, value);
        }
    }
}
