// A metric that each run has logged once: a bar from zero a run, with its value beside it.
import { number } from "../data/format.ts";
import { runPath } from "../data/page/url.ts";
import type { Curve } from "./line_chart.tsx";

/// Whether there is no curve to draw: each run has logged one point at most.
export const areSingle = (curves: readonly Curve[]) => curves.length > 0 && curves.every(({ series }) => series.count <= 1);

export function RunBars({ metric, curves }: { metric: string; curves: readonly Curve[] }) {
    const bars = curves.filter(({ series }) => series.last.length > 0).map((curve) => ({ ...curve, value: curve.series.last[0]! }));
    const finite = bars.map(({ value }) => value).filter(Number.isFinite);
    const low = Math.min(0, ...finite);
    const span = Math.max(0, ...finite) - low || 1;
    const percent = (value: number) => `${(100 * value) / span}%`;
    return (
        <ul class="run-bars" aria-label={`${metric} by run`}>
            {bars.map(({ series, label, style, value }) => (
                <li key={series.runId}>
                    <a class="clip" href={runPath(series.runId)} title={label}>{label}</a>
                    <span class="track" aria-hidden="true">
                        {Number.isFinite(value) && <i style={{ marginLeft: percent(Math.min(0, value) - low), width: percent(Math.abs(value)), background: `var(${style.token})` }} />}
                    </span>
                    <b title={String(value)}>{number(value)}</b>
                </li>
            ))}
        </ul>
    );
}
