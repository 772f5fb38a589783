// The histories that the charts of a page show: read on demand, kept up to date by live points.
import { signal, type Signal } from "@preact/signals";
import { appendPoint, decodeSeries, emptySeries, isStale, type Series } from "./series.ts";
import { getJson, type WireNumber, type WireSeries } from "../wire.ts";

export const kBuckets = 400;
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
    abort: AbortController | undefined;
    /// Live points that came while a read was under way.
    pending: [runId: string, step: number, time: number, value: WireNumber][];
}

function isNewer(series: Series, step: number, time: number): boolean {
    const last = series.step.length - 1;
    return last < 0 || step > series.step[last]! || (step === series.step[last]! && time > series.time[last]!);
}

export class SeriesBook {
    private readonly entries = new Map<string, Entry>();
    private runIds: string[] = [];

    /// The runs that the charts draw.
    setRuns(runIds: readonly string[]): void {
        this.runIds = [...runIds];
    }

    /// A chart of `metric` is in view: reads what it needs and returns the entry to draw from.
    open(metric: string): { runs: ReadonlyMap<string, Series>; version: number; error: unknown; isLoaded: boolean } {
        const entry = this.entry(metric);
        if (entry.runKey !== this.runIds.join()) void this.read(metric, entry);
        return { runs: entry.runs, version: entry.version.value, error: entry.error, isLoaded: entry.isLoaded };
    }

    /// One live point, of a run that is drawn.
    append(runId: string, metric: string, step: number, time: number, value: WireNumber): void {
        const entry = this.entries.get(metric);
        if (!entry || !this.runIds.includes(runId)) return;
        if (entry.abort) {
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
            void this.read(metric, entry);
        }, wait);
    }

    refreshAll(): void {
        for (const metric of this.entries.keys()) this.refresh(metric);
    }

    close(): void {
        for (const entry of this.entries.values()) {
            clearTimeout(entry.timer);
            entry.abort?.abort();
        }
        this.entries.clear();
    }

    private entry(metric: string): Entry {
        let entry = this.entries.get(metric);
        if (!entry) {
            entry = {
                runs: new Map(), version: signal(0), error: undefined, isLoaded: false, runKey: "-", lastRead_ms: 0,
                timer: undefined, abort: undefined, pending: [],
            };
            this.entries.set(metric, entry);
        }
        return entry;
    }

    private async read(metric: string, entry: Entry): Promise<void> {
        entry.abort?.abort();
        const abort = new AbortController();
        entry.abort = abort;
        entry.runKey = this.runIds.join();
        entry.lastRead_ms = Date.now();
        entry.pending = [];
        if (this.runIds.length === 0) {
            entry.runs = new Map();
            entry.abort = undefined;
            return;
        }
        const query = `run_ids=${this.runIds.join()}&metric=${encodeURIComponent(metric)}&buckets=${kBuckets}`;
        try {
            const answer = await getJson<{ metrics: { series: WireSeries[] }[] }>(`/api/ui/series?${query}`, abort.signal);
            entry.runs = new Map(answer.metrics[0]!.series.map((wire) => [wire.run_id, decodeSeries(wire)]));
            entry.error = undefined;
            entry.isLoaded = true;
            for (const [runId, step, time, value] of entry.pending) {
                const series = entry.runs.get(runId) ?? emptySeries(runId);
                entry.runs.set(runId, series);
                if (isNewer(series, step, time)) appendPoint(series, step, time, value);
            }
        } catch (error) {
            if (abort.signal.aborted) return;
            entry.error = error;
        }
        entry.abort = undefined;
        ++entry.version.value;
    }
}
