// A card with one metric's chart. It reads its data only while it is near the screen.
import { useEffect, useRef, useState } from "preact/hooks";
import { lineStyles } from "../data/curves/colors.ts";
import { download, writeCsv } from "../data/files/csv.ts";
import { number } from "../data/format.ts";
import type { XAxis } from "../data/curves/series.ts";
import type { SeriesBook } from "../data/curves/series_book.ts";
import { Toggle } from "../parts/fields.tsx";
import { DownloadIcon } from "../parts/icons.tsx";
import { LineChart, type Curve } from "./line_chart.tsx";
import { areSingle, RunBars } from "./run_bars.tsx";

interface Props {
    metric: string;
    book: SeriesBook;
    /// Runs in the order of drawing.
    runs: readonly { id: string; label: string }[];
    xAxis: XAxis;
    smoothing: number;
    height?: number;
    /// Shown at the right of the title.
    latest?: number;
}

function useNearScreen(): [{ current: HTMLElement | null }, boolean] {
    const element = useRef<HTMLElement>(null);
    const [isNear, setNear] = useState(false);
    useEffect(() => {
        const observer = new IntersectionObserver((entries) => setNear(entries.at(-1)!.isIntersecting), { rootMargin: "60% 0px" });
        observer.observe(element.current!);
        return () => observer.disconnect();
    }, []);
    return [element, isNear];
}

function exportCsv(metric: string, curves: readonly Curve[]): void {
    const rows: (string | number)[][] = [["run_id", "run", "step", "timestamp_ms", "value", "min", "max", "points"]];
    for (const { series, label } of curves)
        series.step.forEach((step, i) =>
            rows.push([series.runId, label, step, series.time[i]!, series.last[i]!, series.min[i]!, series.max[i]!, series.counts[i]!]),
        );
    download(`${metric.replace(/[^\w.-]+/g, "_")}.csv`, writeCsv(rows));
}

export function SeriesCard(props: Props) {
    const { metric, runs, height = 210 } = props;
    const [element, isNear] = useNearScreen();
    const [isLog, setLog] = useState(false);
    const entry = isNear ? props.book.open(metric) : undefined;
    const styles = lineStyles(runs.map((run) => run.id));
    const curves: Curve[] = runs.flatMap((run, i) => {
        const series = entry?.runs.get(run.id);
        return series ? [{ label: run.label, series, style: styles[i]! }] : [];
    });
    const isBars = areSingle(curves);
    return (
        <section class="card" ref={element} aria-label={`Metric ${metric}`} data-metric={metric}>
            <header>
                <h2 class="clip" title={metric}>{metric}</h2>
                {props.latest !== undefined && <span class="latest" data-latest>{number(props.latest, 5)}</span>}
                {props.latest === undefined && <span class="grow" />}
                {!isBars && <Toggle on={isLog} onChange={setLog} title="Logarithmic y axis">log</Toggle>}
                <button class="button quiet small" type="button" aria-label={`Download ${metric} as CSV`} title="Download CSV" onClick={() => exportCsv(metric, curves)}>
                    <DownloadIcon />
                </button>
            </header>
            <div class="body" style={isBars ? undefined : { minHeight: `${height + 30}px` }}>
                {isBars && <RunBars metric={metric} curves={curves} />}
                {curves.length > 0 && !isBars && (
                    <LineChart
                        name={metric}
                        curves={curves}
                        xAxis={props.xAxis}
                        smoothing={props.smoothing}
                        isLog={isLog}
                        height={height}
                        syncKey={`charts-${props.xAxis}`}
                        version={entry!.version}
                    />
                )}
                {entry?.isLoaded && curves.length === 0 && <p class="faint">None of these runs logged {metric}.</p>}
                {entry?.error instanceof Error && <p class="faint">{entry.error.message}</p>}
            </div>
        </section>
    );
}
