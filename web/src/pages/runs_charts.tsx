// Charts of several runs beside the table: one a metric, selected runs overlaid.
import { useEffect, useMemo } from "preact/hooks";
import { useFirstCharts } from "../charts/first_charts.tsx";
import { SeriesCard } from "../charts/series_card.tsx";
import { count } from "../data/format.ts";
import type { RunStore } from "../data/runs/run_store.ts";
import type { XAxis } from "../data/curves/series.ts";
import { kSmoothingMax } from "../data/curves/series.ts";
import { SeriesBook } from "../data/curves/series_book.ts";
import { Empty } from "../parts/feedback.tsx";
import { Select, TextFilter } from "../parts/fields.tsx";

export interface ChartSettings {
    pattern: string;
    xAxis: string;
    smoothing: number;
}

export function matchMetrics(metrics: readonly string[], pattern: string): string[] {
    if (pattern === "") return [...metrics];
    try {
        const regex = new RegExp(pattern, "i");
        return metrics.filter((metric) => regex.test(metric));
    } catch {
        return metrics.filter((metric) => metric.includes(pattern));
    }
}

/// The settings that all charts of a page share.
export function ChartBar({ pattern, xAxis, smoothing, onChange }: ChartSettings & { onChange: (change: { m?: string; x?: string; smooth?: number }) => void }) {
    return (
        <div class="toolbar">
            <TextFilter value={pattern} onInput={(m) => onChange({ m })} label="Find metrics (regular expression)" placeholder="Metrics, e.g. loss|acc" />
            <Select label="x" value={xAxis} options={[["step", "step"], ["relative", "relative time"], ["time", "time"]]} onChange={(x) => onChange({ x })} />
            <label class="field" title="Exponential moving average, debiased; the raw curve stays behind it">
                smooth
                <input type="range" min="0" max={kSmoothingMax} step="0.001" value={smoothing} aria-label="Smoothing" onInput={(event) => onChange({ smooth: Number(event.currentTarget.value) })} />
                <span class="num" style={{ width: "4.2ch" }}>{smoothing.toFixed(2)}</span>
            </label>
        </div>
    );
}

interface Props extends ChartSettings {
    runs: { id: string; label: string }[];
    metrics: string[];
    store: RunStore;
    isSelected: boolean;
    onChange: (change: { m?: string; x?: string; smooth?: number }) => void;
}

export function RunsCharts(props: Props) {
    const { runs, store } = props;
    const book = useMemo(() => new SeriesBook(), []);
    const key = runs.map((run) => run.id).join();
    book.setRuns(runs.map((run) => run.id));
    useEffect(() => {
        const drawn = new Set(runs.map((run) => run.id));
        store.onMetrics = (runId, keys) => {
            if (drawn.has(runId)) for (const metric of keys) book.refresh(metric);
        };
    }, [store, key]);
    useEffect(() => () => book.close(), []);
    const metrics = matchMetrics(props.metrics, props.pattern);
    const [first, more] = useFirstCharts(metrics);
    return (
        <section class="frame" aria-label="Charts">
            <ChartBar {...props} />
            <p class="status-line" style={{ margin: "8px 0 6px" }}>
                {props.isSelected ? count(runs.length, "selected run") : `the first ${count(runs.length, "run")} of the table; select runs to compare them`}
            </p>
            {metrics.length === 0 && <Empty title={props.metrics.length === 0 ? "No metrics yet" : "No metric matches"} />}
            <div class="charts" tabIndex={0} role="group" aria-label="Metric charts">
                {first.map((metric) => (
                    <SeriesCard key={metric} metric={metric} book={book} runs={runs} xAxis={props.xAxis as XAxis} smoothing={props.smoothing} height={190} />
                ))}
                {more}
            </div>
        </section>
    );
}
