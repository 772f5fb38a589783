// Parallel coordinates: one axis a parameter, the objective last, one line a trial, coloured by how good it is. Drag along
// an axis to brush it, click it to clear. Lines are drawn once to a bitmap; a brush redraws only what it keeps.
import { useMemo, useRef, useState } from "preact/hooks";
import { position, ticks, valueAt, type Axis, type Brush } from "../data/study/axes.ts";
import { count, number } from "../data/format.ts";
import type { Trial } from "../data/study/study.ts";
import { Plot, TrialTip, tickText, type Pen } from "./canvas.tsx";

interface Props {
    trials: readonly Trial[];
    axes: readonly Axis[];
    active: ReadonlySet<number>;
    brushes: readonly Brush[];
    goal: "min" | "max";
    height: number;
    hovered: number | undefined;
    onHover: (trial: number | undefined) => void;
    onBrush: (brushes: Brush[]) => void;
    onOpen: (trial: Trial) => void;
}

const kTop = 34;
const kBottom = 18;
const kSide = 58;

/// From bad to good: a ramp that is also one of lightness, safe for colour-blind readers.
const kRampLight = ["#d8c9a3", "#9fb7a5", "#4f98b5", "#13699f", "#00406e"];
const kRampDark = ["#4b4a3f", "#3f6466", "#3688ae", "#64b7ea", "#c9ecff"];

function mix(ramp: readonly string[], at: number): string {
    const x = Math.min(0.9999, Math.max(0, at)) * (ramp.length - 1);
    const part = (hex: string, i: number) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
    const a = ramp[Math.floor(x)]!;
    const b = ramp[Math.floor(x) + 1]!;
    const share = x - Math.floor(x);
    return `rgb(${[0, 1, 2].map((i) => Math.round(part(a, i) * (1 - share) + part(b, i) * share)).join(",")})`;
}

/// 0 (worst) to 1 (best) by rank among trials with a value: outliers do not eat the colours.
function ranks(trials: readonly Trial[], objective: Axis, goal: "min" | "max"): Map<number, number> {
    const valued = trials
        .map((trial) => ({ number: trial.number, value: Number(objective.get(trial)) }))
        .filter((entry) => Number.isFinite(entry.value))
        .sort((a, b) => (goal === "min" ? b.value - a.value : a.value - b.value));
    return new Map(valued.map((entry, i) => [entry.number, valued.length > 1 ? i / (valued.length - 1) : 1]));
}

/// The widest title of an axis, in pixels.
const kTitleMax = 104;

interface Layout {
    xs: number[];
    y: (at: number) => number;
    width: number;
}

function makeLayout(width: number, height: number, count: number): Layout {
    const span = Math.max(1, count - 1);
    const xs = Array.from({ length: count }, (_, i) => kSide + ((width - 2 * kSide) * i) / span);
    return { xs, y: (at) => kTop + (1 - at) * (height - kTop - kBottom), width };
}

/// A trial's points, axis by axis; undefined where the parameter is inactive.
function pathOf(trial: Trial, axes: readonly Axis[], layout: Layout): ([number, number] | undefined)[] {
    return axes.map((axis, i) => {
        const value = axis.get(trial);
        const at = value === undefined ? NaN : position(axis.scale, value);
        return Number.isFinite(at) ? [layout.xs[i]!, layout.y(Math.min(1.02, Math.max(-0.02, at)))] : undefined;
    });
}

/// Smooth lines; a gap (an inactive parameter) is bridged by a dotted one.
function drawPath(ctx: CanvasRenderingContext2D, points: readonly ([number, number] | undefined)[]): void {
    let before: [number, number] | undefined;
    let isGap = false;
    ctx.beginPath();
    const bridges: [[number, number], [number, number]][] = [];
    for (const point of points) {
        if (!point) {
            isGap = before !== undefined;
            continue;
        }
        if (!before || isGap) {
            if (before) bridges.push([before, point]);
            ctx.moveTo(point[0], point[1]);
        } else {
            const middle = (before[0] + point[0]) / 2;
            ctx.bezierCurveTo(middle, before[1], middle, point[1], point[0], point[1]);
        }
        before = point;
        isGap = false;
    }
    ctx.stroke();
    if (bridges.length === 0) return;
    ctx.setLineDash([2, 4]);
    ctx.beginPath();
    for (const [from, to] of bridges) {
        const middle = (from[0] + to[0]) / 2;
        ctx.moveTo(...from);
        ctx.bezierCurveTo(middle, from[1], middle, to[1], to[0], to[1]);
    }
    ctx.stroke();
    ctx.setLineDash([]);
}

function drawAxis(pen: Pen, axis: Axis, x: number, layout: Layout, brush: Brush | undefined): void {
    const { ctx, ink } = pen;
    ctx.strokeStyle = pen.color("--line-strong");
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(Math.round(x) + 0.5, layout.y(1));
    ctx.lineTo(Math.round(x) + 0.5, layout.y(0));
    ctx.stroke();
    if (brush) {
        ctx.fillStyle = pen.color("--accent");
        ctx.globalAlpha = 0.22;
        ctx.fillRect(x - 8, layout.y(brush.high), 16, layout.y(brush.low) - layout.y(brush.high));
        ctx.globalAlpha = 1;
        ctx.strokeStyle = pen.color("--accent");
        ctx.strokeRect(x - 8, layout.y(brush.high), 16, layout.y(brush.low) - layout.y(brush.high));
    }
    ctx.textAlign = "center";
    ctx.textBaseline = "alphabetic";
    ctx.fillStyle = pen.color(axis.isObjective ? "--best-text" : "--text");
    ctx.font = `600 ${ctx.font.replace(/^(600 )?/, "")}`;
    // Titles beside each other stay apart, also on a phone.
    const room = layout.xs.length > 1 ? layout.xs[1]! - layout.xs[0]! - 10 : kTitleMax;
    ctx.fillText(fitText(ctx, axis.name, Math.min(kTitleMax, room)), x, 14);
    ctx.font = ctx.font.replace(/^600 /, "");
    ctx.fillStyle = ink.faint;
    if (axis.scale.kind === "log") ctx.fillText("log", x, 26);
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    const all = ticks(axis.scale, 5);
    const every = Math.ceil(all.length / 12);
    all.forEach((tick, i) => {
        if (i % every !== 0) return;
        const y = layout.y(position(axis.scale, tick));
        const text = fitText(ctx, tickText(tick), 76);
        // A halo keeps labels readable over lines.
        ctx.strokeStyle = ink.surface;
        ctx.lineWidth = 3.5;
        ctx.lineJoin = "round";
        ctx.strokeText(text, x + 7, y);
        ctx.fillStyle = ink.text;
        ctx.fillText(text, x + 7, y);
        ctx.strokeStyle = pen.color("--line-strong");
        ctx.lineWidth = 1;
        ctx.beginPath();
        ctx.moveTo(x - 3, y);
        ctx.lineTo(x + 3, y);
        ctx.stroke();
    });
}

function fitText(ctx: CanvasRenderingContext2D, text: string, width: number): string {
    if (ctx.measureText(text).width <= width) return text;
    let end = text.length;
    while (end > 1 && ctx.measureText(`${text.slice(0, end)}…`).width > width) --end;
    return `${text.slice(0, end)}…`;
}

export function Parallel(props: Props) {
    const { trials, axes } = props;
    const layout = useRef<Layout | undefined>(undefined);
    const drag = useRef<{ axis: number; from: number } | undefined>(undefined);
    const [live, setLive] = useState<Brush>();
    const [tip, setTip] = useState<{ trial: Trial; x: number; y: number }>();
    const objective = axes.at(-1);
    const good = useMemo(() => (objective ? ranks(trials, objective, props.goal) : new Map<number, number>()), [trials, objective, props.goal]);
    const shown = useMemo(() => trials.filter((trial) => good.has(trial.number)), [trials, good]);
    const brushes = live ? [...props.brushes.filter((brush) => brush.axis !== live.axis), live] : props.brushes;

    const draw = (pen: Pen) => {
        const own = makeLayout(pen.width, props.height, axes.length);
        layout.current = own;
        const { ctx } = pen;
        const isDark = getComputedStyle(document.body).colorScheme === "dark" || luminance(pen.ink.surface) < 0.4;
        const ramp = isDark ? kRampDark : kRampLight;
        const thin = shown.length > 500;
        // Worst first, so that good trials lie on top.
        const order = [...shown].sort((a, b) => good.get(a.number)! - good.get(b.number)!);
        ctx.strokeStyle = pen.color("--line");
        ctx.lineWidth = 1;
        for (const trial of order) if (!props.active.has(trial.number)) drawPath(ctx, pathOf(trial, axes, own));
        for (const trial of order) {
            if (!props.active.has(trial.number)) continue;
            const rank = good.get(trial.number)!;
            ctx.strokeStyle = mix(ramp, rank);
            ctx.globalAlpha = trial.state === "complete" ? (thin ? 0.45 : 0.85) : 0.5;
            ctx.lineWidth = thin ? 0.9 : rank > 0.9 ? 1.9 : 1.2;
            drawPath(ctx, pathOf(trial, axes, own));
        }
        ctx.globalAlpha = 1;
        const hovered = shown.find((trial) => trial.number === props.hovered);
        if (hovered) {
            ctx.strokeStyle = pen.color("--c1");
            ctx.lineWidth = 2.6;
            drawPath(ctx, pathOf(hovered, axes, own));
        }
        axes.forEach((axis, i) => drawAxis(pen, axis, own.xs[i]!, own, brushes.find((brush) => brush.axis === axis.name)));
    };

    const axisAt = (x: number) => layout.current?.xs.findIndex((at) => Math.abs(at - x) < 14) ?? -1;
    const along = (y: number) => Math.min(1, Math.max(0, 1 - (y - kTop) / (props.height - kTop - kBottom)));
    const brushOf = (y: number): Brush | undefined => {
        const from = drag.current;
        if (!from) return undefined;
        return { axis: axes[from.axis]!.name, low: Math.min(from.from, along(y)), high: Math.max(from.from, along(y)) };
    };
    const onMove = (x: number, y: number) => {
        if (drag.current) {
            setLive(brushOf(y));
            return;
        }
        const trial = nearestPath(shown.filter((t) => props.active.has(t.number)), axes, layout.current, x, y);
        props.onHover(trial?.number);
        setTip(trial ? { trial, x, y } : undefined);
    };
    const onUp = (_x: number, y: number) => {
        const brush = brushOf(y);
        drag.current = undefined;
        setLive(undefined);
        if (!brush) return;
        const others = props.brushes.filter((other) => other.axis !== brush.axis);
        props.onBrush(brush.high - brush.low < 0.015 ? others : [...others, brush]);
    };
    return (
        <Plot
            height={props.height}
            summary={`Parallel coordinates of ${count(shown.length, "trial")} over ${axes.map((axis) => axis.name).join(", ")}; ${props.active.size} within the brushes.`}
            draw={draw}
            deps={[shown, axes, props.active, brushes, props.hovered]}
            onMove={onMove}
            onLeave={() => {
                setTip(undefined);
                props.onHover(undefined);
            }}
            onDown={(x, y) => {
                const axis = axisAt(x);
                if (axis >= 0) drag.current = { axis, from: along(y) };
            }}
            onUp={onUp}
            onClick={(x) => {
                if (axisAt(x) < 0 && tip?.trial.runId) props.onOpen(tip.trial);
            }}
            isHit={tip !== undefined}
        >
            {tip && <TrialTip trial={tip.trial} at={tip} width={layout.current?.width ?? 0} rows={axes.map((axis) => [axis.name, axis.get(tip.trial)])} />}
        </Plot>
    );
}

function luminance(color: string): number {
    const [r = 255, g = 255, b = 255] = (color.match(/[\d.]+/g) ?? []).map(Number);
    return (0.3 * r + 0.59 * g + 0.11 * b) / 255;
}

/// The trial whose line passes closest to (x, y), within 8 px; lines between axes are looked at where they are at x.
function nearestPath(trials: readonly Trial[], axes: readonly Axis[], layout: Layout | undefined, x: number, y: number): Trial | undefined {
    if (!layout) return undefined;
    const right = layout.xs.findIndex((at) => at >= x);
    if (right < 1) return undefined;
    const share = (x - layout.xs[right - 1]!) / (layout.xs[right]! - layout.xs[right - 1]!);
    let found: Trial | undefined;
    let distance = 8;
    for (const trial of trials) {
        const points = pathOf(trial, axes, layout);
        const a = points[right - 1];
        const b = points[right];
        if (!a || !b) continue;
        const d = Math.abs(bezierY(a[1], b[1], share) - y);
        if (d < distance) [found, distance] = [trial, d];
    }
    return found;
}

/// Height of drawPath's curve at `share` of the way: x(t) has control points at the middle, so t is found by bisection.
function bezierY(from: number, to: number, share: number): number {
    let low = 0;
    let high = 1;
    for (let i = 0; i < 18; ++i) {
        const t = (low + high) / 2;
        const x = 1.5 * t * (1 - t) * (1 - t) + 1.5 * t * t * (1 - t) + t * t * t;
        if (x < share) low = t;
        else high = t;
    }
    const t = (low + high) / 2;
    return from * ((1 - t) ** 3 + 3 * t * (1 - t) ** 2) + to * (t ** 3 + 3 * t * t * (1 - t));
}

/// "lr 1e-4 to 3e-3": what a brush keeps, in words.
export function brushText(brush: Brush, axes: readonly Axis[]): string {
    const axis = axes.find((candidate) => candidate.name === brush.axis);
    if (!axis) return brush.axis;
    if (axis.scale.kind === "category") {
        const kept = axis.scale.values.filter((value) => {
            const at = position(axis.scale, value);
            return at >= brush.low - 1e-9 && at <= brush.high + 1e-9;
        });
        return `${brush.axis}: ${kept.join(", ") || "nothing"}`;
    }
    return `${brush.axis}: ${number(valueAt(axis.scale, brush.low), 3)} to ${number(valueAt(axis.scale, brush.high), 3)}`;
}
