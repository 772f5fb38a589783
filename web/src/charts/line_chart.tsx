// Metric curves: uPlot, with the min-max band of down-sampled parts behind the line and the smoothed line above
// the raw one.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { LineStyle } from "../data/curves/colors.ts";
import { count, date, duration, number } from "../data/format.ts";
import { align, describe, smooth, xValues, type Series, type XAxis } from "../data/curves/series.ts";
import { themeVersion, token } from "../data/page/theme.ts";
import { kFont } from "./canvas.tsx";

export interface Curve {
    label: string;
    series: Series;
    style: LineStyle;
}

export interface LineChartProps {
    /// The metric's name.
    name: string;
    curves: Curve[];
    xAxis: XAxis;
    smoothing: number;
    isLog: boolean;
    height: number;
    /// Charts with the same key share the cursor.
    syncKey: string;
    /// Grows when the content of `curves` changed in place.
    version: number;
}

type Row = (number | null | undefined)[];

interface Plan {
    data: [number[], ...Row[]];
    series: uPlot.Series[];
    bands: uPlot.Band[];
    /// Index in `series` of each curve's main line.
    main: number[];
}

function alpha(color: string, share: number): string {
    const match = /rgba?\(([\d.]+)[, ]+([\d.]+)[, ]+([\d.]+)/.exec(color);
    return match ? `rgba(${match[1]}, ${match[2]}, ${match[3]}, ${share})` : color;
}

/// uPlot's log scale cannot draw what is not positive.
function positive(values: readonly number[], isLog: boolean): readonly number[] {
    return isLog ? values.map((value) => (value > 0 ? value : NaN)) : values;
}

const line = (color: string, width: number, extra: Partial<uPlot.Series> = {}): uPlot.Series => ({
    stroke: color,
    width,
    points: { show: false },
    ...extra,
});

function makePlan(props: LineChartProps): Plan {
    const columns: { x: readonly number[]; y: readonly number[] }[] = [];
    const plan: Plan = { data: [[]], series: [{}], bands: [], main: [] };
    const add = (series: uPlot.Series, x: readonly number[], y: readonly number[]) => {
        columns.push({ x, y: positive(y, props.isLog) });
        return plan.series.push(series) - 1;
    };
    for (const { label, series, style } of props.curves) {
        const x = xValues(series, props.xAxis);
        const color = token(style.token);
        const hasBand = series.last.some((value, i) => series.min[i] !== value || series.max[i] !== value);
        if (hasBand && props.curves.length <= 12) {
            const high = add(line("transparent", 0), x, series.max);
            const low = add(line("transparent", 0), x, series.min);
            plan.bands.push({ series: [high, low], fill: alpha(color, 0.16) });
        }
        const points = { show: series.step.length <= 40, size: 4, fill: color, stroke: color };
        if (props.smoothing > 0) {
            add(line(alpha(color, 0.32), 1), x, series.last);
            const smoothed = smooth(series.last, series.counts, props.smoothing);
            plan.main.push(add(line(color, 1.8, { label, dash: [...style.dash] }), x, smoothed));
        } else {
            plan.main.push(add(line(color, 1.6, { label, dash: [...style.dash], points }), x, series.last));
        }
    }
    const { x, ys } = align(columns);
    plan.data = [x, ...ys];
    return plan;
}

function axisText(axis: XAxis, value: number): string {
    if (axis === "step") return number(value);
    return axis === "time" ? date(value * 1000).slice(11) : duration(value * 1000);
}

/// Fills the tooltip with the curves' values at the cursor, best to read from the top.
function fillTip(tip: HTMLElement, plot: uPlot, plan: Plan, props: LineChartProps): void {
    const index = plot.cursor.idx;
    const left = plot.cursor.left ?? -1;
    if (index === null || index === undefined || left < 0) {
        tip.hidden = true;
        return;
    }
    const rows = plan.main
        .map((at, i) => ({ value: plan.data[at]![index], curve: props.curves[i]! }))
        .filter((row) => typeof row.value === "number")
        .sort((a, b) => (b.value as number) - (a.value as number))
        .slice(0, 12);
    tip.hidden = rows.length === 0;
    if (tip.hidden) return;
    tip.replaceChildren();
    const head = document.createElement("div");
    head.className = "faint";
    head.textContent = `${props.xAxis} ${axisText(props.xAxis, plan.data[0][index]!)}`;
    const table = document.createElement("table");
    for (const { value, curve } of rows) {
        const row = table.insertRow();
        const name = row.insertCell();
        const swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.background = `var(${curve.style.token})`;
        name.append(swatch, curve.label);
        row.insertCell().textContent = number(value as number, 5);
    }
    tip.append(head, table);
    const isRight = left > plot.bbox.width / devicePixelRatio / 2;
    const offset = plot.bbox.left / devicePixelRatio + left;
    tip.style.left = isRight ? "" : `${offset + 12}px`;
    tip.style.right = isRight ? `${plot.width - offset + 12}px` : "";
    tip.style.top = "10px";
}

function makeOptions(props: LineChartProps, plan: Plan, width: number, tip: HTMLElement): uPlot.Options {
    const ink = token("--faint");
    const grid = { stroke: token("--line"), width: 1 };
    const common = { stroke: ink, font: kFont, grid, ticks: { show: false } };
    const ySize = (_: uPlot, values: string[] | null) => 16 + 6.4 * Math.max(2, ...(values ?? []).map((text) => text.length));
    return {
        width,
        height: props.height,
        padding: [8, 10, 0, 0],
        legend: { show: false },
        cursor: {
            sync: { key: props.syncKey, setSeries: false },
            drag: { x: true, y: false, setScale: true },
            points: { size: 7 },
            y: false,
        },
        scales: { x: { time: props.xAxis === "time" }, y: { distr: props.isLog ? 3 : 1 } },
        axes: [
            { ...common, grid: { show: false }, size: 26, gap: 4, values: props.xAxis === "time" ? undefined : (_, all) => all.map((v) => axisText(props.xAxis, v)) },
            { ...common, size: ySize, gap: 6, values: (_, all) => all.map((v) => (v === null ? "" : number(v, 3))) },
        ],
        series: plan.series,
        bands: plan.bands,
        hooks: { setCursor: [(plot) => fillTip(tip, plot, plan, props)] },
    };
}

function summary(props: LineChartProps): string {
    const lasts = props.curves
        .filter((curve) => curve.series.last.length > 0)
        .slice(0, 8)
        .map((curve) => `${curve.label} ends at ${number(curve.series.last.at(-1)!)}`);
    return `Line chart of ${props.name} over ${props.xAxis}, ${count(props.curves.length, "curve")}. ${lasts.join(", ")}.`;
}

export function LineChart(props: LineChartProps) {
    const frame = useRef<HTMLDivElement>(null);
    const tip = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | undefined>(undefined);
    const look = themeVersion.value;
    const shape = props.curves.map((curve) => curve.series.runId + curve.style.token + curve.style.dash.join()).join();

    // A zoomed chart keeps its range while points arrive; one that shows everything keeps showing everything.
    useLayoutEffect(() => {
        const plan = makePlan(props);
        const old = plot.current;
        const zoom = old && isZoomed(old) ? { min: old.scales.x!.min!, max: old.scales.x!.max! } : undefined;
        old?.destroy();
        const width = Math.max(120, frame.current!.clientWidth);
        const next = new uPlot(makeOptions(props, plan, width, tip.current!), plan.data as uPlot.AlignedData, frame.current!);
        if (zoom && shape === lastShape.current) next.setScale("x", zoom);
        lastShape.current = shape;
        plot.current = next;
    }, [shape, props.version, props.xAxis, props.smoothing, props.isLog, props.height, look]);
    const lastShape = useRef("");
    useEffect(() => {
        const observer = new ResizeObserver(() => {
            const width = frame.current?.clientWidth ?? 0;
            if (plot.current && width > 0 && width !== plot.current.width) plot.current.setSize({ width, height: props.height });
        });
        observer.observe(frame.current!);
        return () => {
            observer.disconnect();
            plot.current?.destroy();
            plot.current = undefined;
        };
    }, []);
    const { shown, total, nan } = describe(props.curves.map((curve) => curve.series));
    return (
        <>
            <div class="plot" role="img" aria-label={summary(props)} ref={frame} style={{ height: `${props.height}px` }}>
                <div class="tip" hidden ref={tip} />
            </div>
            <div class="chart-caption num">
                <span>{shown < total ? `${shown.toLocaleString("en-US")} of ${total.toLocaleString("en-US")} points, band: min to max` : count(total, "point")}</span>
                <span>{nan > 0 ? `${nan} NaN` : ""}</span>
            </div>
        </>
    );
}

function isZoomed(plot: uPlot): boolean {
    const x = plot.data[0];
    const { min, max } = plot.scales.x!;
    return x.length > 1 && min != null && max != null && (min > x[0]! || max < x[x.length - 1]!);
}
