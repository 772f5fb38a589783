// The study over its trials: every value by trial number, marked by state, and the best so far.
import { useMemo, useRef, useState } from "preact/hooks";
import { fitScale } from "../data/study/axes.ts";
import { count, number } from "../data/format.ts";
import { fence } from "../data/study/pareto.ts";
import { bestSoFar, bestTrial, lineage, shownValue, type Trial } from "../data/study/study.ts";
import { drawFrame, drawMark, nearest, Plot, ring, TrialTip, type Frame, type Pen } from "./canvas.tsx";

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

/// From each trial to those that continued it; the lineage in `marked` stands out.
function drawLineages(pen: Pen, trials: ReadonlyMap<number, Trial>, place: (trial: Trial) => [number, number], isShown: (trial: Trial) => boolean, marked: ReadonlySet<number>): void {
    const { ctx } = pen;
    for (const isMarked of [false, true]) {
        ctx.strokeStyle = pen.color(isMarked ? "--text" : "--line-strong");
        ctx.lineWidth = isMarked ? 1.75 : 1;
        ctx.globalAlpha = isMarked ? 0.9 : 0.6;
        ctx.beginPath();
        for (const trial of trials.values()) {
            const parent = trial.origin?.parent === undefined ? undefined : trials.get(trial.origin.parent);
            if (!parent || marked.has(trial.number) !== isMarked || !isShown(trial) || !isShown(parent)) continue;
            ctx.moveTo(...place(parent));
            ctx.lineTo(...place(trial));
        }
        ctx.stroke();
    }
    ctx.globalAlpha = 1;
}

export function History(props: Props) {
    const { trials, goal } = props;
    const frame = useRef<Frame | undefined>(undefined);
    const [tip, setTip] = useState<Trial>();
    const best = useMemo(() => bestSoFar(trials, goal), [trials, goal]);
    const shown = useMemo(() => trials.filter((trial) => Number.isFinite(shownValue(trial))), [trials]);
    const byNumber = useMemo(() => new Map(shown.map((trial) => [trial.number, trial])), [shown]);
    // Of the trial under the pointer, else of the best one.
    const marked = useMemo(() => lineage(byNumber, props.hovered ?? bestTrial(trials, goal)?.number), [byNumber, props.hovered]);
    const values = shown.map(shownValue);
    const yScale = fitScale(props.isLog ? values : fence(values, goal), props.isLog, 0.06);
    const last = Math.max(1, trials.at(-1)?.number ?? 1);
    const clamp = (y: number, f: Frame) => Math.min(f.area.top + f.area.height, Math.max(f.area.top, y));

    const draw = (pen: Pen) => {
        const f = drawFrame(pen, { kind: "linear", low: -last * 0.01, high: last * 1.01, isWhole: true }, yScale, "trial");
        frame.current = f;
        drawLineages(pen, byNumber, (trial) => place(f, trial), (trial) => props.active.has(trial.number), marked);
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
        if (hovered) ring(pen, f.x(hovered.number), clamp(f.y(shownValue(hovered)), f), size + 4);
    };
    const place = (f: Frame, trial: Trial): [number, number] => [f.x(trial.number), clamp(f.y(shownValue(trial)), f)];
    const find = (x: number, y: number) => (frame.current ? nearest(shown, (trial) => place(frame.current!, trial), x, y) : undefined);
    const pick = (trial: Trial | undefined) => {
        setTip(trial);
        props.onHover(trial?.number);
    };
    const open = (trial: Trial | undefined) => {
        if (trial?.runId) props.onOpen(trial);
    };
    const at = tip && frame.current && place(frame.current, tip);
    const end = best.at(-1);
    const hasLineages = shown.some((trial) => trial.origin);
    const summary = `${count(trials.length, "trial")} of ${props.metric}. ` + (end === undefined || Number.isNaN(end) ? "None is complete." : `Best so far ${number(end)}.`) + (hasLineages ? " Lines join each trial to those that continued it." : "");
    return (
        <Plot
            height={props.height}
            summary={summary}
            draw={draw}
            deps={[trials, props.active, props.isLog, props.hovered, goal]}
            onMove={(x, y) => pick(find(x, y))}
            onLeave={() => pick(undefined)}
            onClick={(x, y) => open(find(x, y))}
            isHit={tip !== undefined}
            walk={{ across: shown, at: tip, onPick: pick, onOpen: open }}
        >
            {tip && at && (
                <TrialTip
                    trial={tip}
                    at={{ x: at[0], y: at[1] }}
                    width={frame.current!.area.left + frame.current!.area.width + 10}
                    rows={[
                        [props.metric, shownValue(tip)],
                        ["at step", tip.state === "complete" ? undefined : tip.steps.at(-1)],
                        ["continues trial", tip.origin?.parent],
                        ["steps", tip.origin && `${tip.origin.from}–${tip.origin.to}`],
                    ]}
                />
            )}
        </Plot>
    );
}
