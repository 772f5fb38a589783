// The study over its trials: every value by trial number, marked by state, and the best so far.
import { useMemo, useRef, useState } from "preact/hooks";
import { fitScale } from "../data/axes.ts";
import { number } from "../data/format.ts";
import { bestSoFar, shownValue, type Trial } from "../data/study.ts";
import { drawFrame, drawMark, Plot, Tip, type Frame, type Pen } from "./canvas.tsx";

interface Props {
    trials: readonly Trial[];
    /// Trials within all brushes; the others are drawn faintly.
    active: ReadonlySet<number>;
    goal: "min" | "max";
    metric: string;
    isLog: boolean;
    height: number;
    hovered: number | undefined;
    onHover: (trial: number | undefined) => void;
    onOpen: (trial: Trial) => void;
}

function drawBest(pen: Pen, frame: Frame, trials: readonly Trial[], best: readonly number[]): void {
    const { ctx } = pen;
    ctx.strokeStyle = pen.color("--best");
    ctx.lineWidth = 2;
    ctx.lineJoin = "round";
    ctx.beginPath();
    let isStarted = false;
    let before = NaN;
    trials.forEach((trial, i) => {
        const value = best[i]!;
        if (Number.isNaN(value)) return;
        const x = frame.x(trial.number);
        if (!isStarted) ctx.moveTo(x, frame.y(value));
        else {
            ctx.lineTo(x, frame.y(before));
            ctx.lineTo(x, frame.y(value));
        }
        isStarted = true;
        before = value;
    });
    if (isStarted) ctx.lineTo(frame.area.left + frame.area.width, frame.y(before));
    ctx.stroke();
}

/// Outliers (a diverged trial) would flatten everything else: the linear axis ends at the upper fence of the finite
/// values, and what lies beyond stands at the edge.
function fence(values: readonly number[], goal: "min" | "max"): number[] {
    const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
    if (sorted.length < 8) return sorted;
    const at = (q: number) => sorted[Math.floor(q * (sorted.length - 1))]!;
    const reach = 4 * (at(0.75) - at(0.25)) || Infinity;
    return goal === "min" ? sorted.filter((v) => v <= at(0.75) + reach) : sorted.filter((v) => v >= at(0.25) - reach);
}

export function History(props: Props) {
    const { trials, goal } = props;
    const frame = useRef<Frame | undefined>(undefined);
    const [tip, setTip] = useState<{ trial: Trial; x: number; y: number; width: number }>();
    const best = useMemo(() => bestSoFar(trials, goal), [trials, goal]);
    const shown = useMemo(() => trials.filter((trial) => Number.isFinite(shownValue(trial))), [trials]);
    const values = shown.map(shownValue);
    const yScale = fitScale(props.isLog ? values : fence(values, goal), props.isLog, 0.06);
    const last = Math.max(1, trials.at(-1)?.number ?? 1);
    const clamp = (y: number, f: Frame) => Math.min(f.area.top + f.area.height, Math.max(f.area.top, y));

    const draw = (pen: Pen) => {
        const f = drawFrame(pen, { kind: "linear", low: -last * 0.01, high: last * 1.01 }, yScale, "trial");
        frame.current = f;
        const size = shown.length > 2000 ? 1.8 : shown.length > 300 ? 2.6 : 3.6;
        for (const trial of shown) {
            const isActive = props.active.has(trial.number);
            pen.ctx.globalAlpha = isActive ? (trial.state === "pruned" ? 0.85 : 0.9) : 0.14;
            const y = f.y(shownValue(trial));
            if (Number.isNaN(y)) continue;
            drawMark(pen.ctx, trial.state, f.x(trial.number), clamp(y, f), size, pen.color(`--${trial.state}`));
        }
        pen.ctx.globalAlpha = 1;
        drawBest(pen, f, trials, best);
        const hovered = shown.find((trial) => trial.number === props.hovered);
        if (hovered) {
            pen.ctx.strokeStyle = pen.color("--text");
            pen.ctx.lineWidth = 1.5;
            pen.ctx.beginPath();
            pen.ctx.arc(f.x(hovered.number), clamp(f.y(shownValue(hovered)), f), size + 4, 0, 7);
            pen.ctx.stroke();
        }
    };
    const nearest = (x: number, y: number): Trial | undefined => {
        const f = frame.current;
        if (!f) return undefined;
        let found: Trial | undefined;
        let distance = 24 ** 2;
        for (const trial of shown) {
            const d = (f.x(trial.number) - x) ** 2 + (clamp(f.y(shownValue(trial)), f) - y) ** 2;
            if (d < distance) [found, distance] = [trial, d];
        }
        return found;
    };
    const onMove = (x: number, y: number) => {
        const trial = nearest(x, y);
        props.onHover(trial?.number);
        const f = frame.current;
        setTip(trial && f ? { trial, x: f.x(trial.number), y: clamp(f.y(shownValue(trial)), f), width: f.area.left + f.area.width + 10 } : undefined);
    };
    const end = best.at(-1);
    const summary = `${trials.length} trials of ${props.metric}. ` + (end === undefined || Number.isNaN(end) ? "None is complete yet." : `Best so far ${number(end)}.`);
    return (
        <Plot
            height={props.height}
            summary={summary}
            draw={draw}
            deps={[trials, props.active, props.isLog, props.hovered, goal]}
            onMove={onMove}
            onLeave={() => {
                setTip(undefined);
                props.onHover(undefined);
            }}
            onClick={(x, y) => {
                const trial = nearest(x, y);
                if (trial?.runId) props.onOpen(trial);
            }}
            isHit={tip !== undefined}
        >
            {tip && (
                <Tip at={tip} width={tip.width}>
                    <b>Trial {tip.trial.number}</b> <span class="faint">{tip.trial.state}</span>
                    <div class="num">
                        {props.metric} {number(shownValue(tip.trial), 5)}
                        {tip.trial.state !== "complete" && tip.trial.steps.length > 0 && ` at step ${tip.trial.steps.at(-1)}`}
                    </div>
                </Tip>
            )}
        </Plot>
    );
}
