// Two objectives against each other: every trial that has both, and the staircase of those that no other one beats.
import { useMemo, useRef, useState } from "preact/hooks";
import { fitScale } from "../data/study/axes.ts";
import { count, paramText } from "../data/format.ts";
import { fence, frontOf, objectiveOf } from "../data/study/pareto.ts";
import type { StudyMetric, Trial } from "../data/study/study.ts";
import { drawFrame, drawMark, nearest, Plot, ring, TrialTip, type Frame, type Pen } from "./canvas.tsx";

interface Props {
    metrics: readonly StudyMetric[];
    trials: readonly Trial[];
    /// Trials within all brushes; the others are drawn faintly.
    active: ReadonlySet<number>;
    /// Of all objectives.
    front: ReadonlySet<number>;
    /// Indexes of the objectives across and up.
    across: number;
    up: number;
    isLog: boolean;
    height: number;
    hovered: number | undefined;
    onHover: (trial: number | undefined) => void;
    onOpen: (trial: Trial) => void;
}

const kParamsShown = 10;

export function axisTitle(metric: StudyMetric): string {
    return `${metric.name}, ${metric.goal === "min" ? "less" : "more"} is better`;
}

/// What a trial is drawn as: its state, or that it breaks a constraint, or that it is on the front.
function kindOf(trial: Trial, front: ReadonlySet<number>): string {
    if (front.has(trial.number)) return "front";
    return trial.state === "complete" && trial.violation > 0 ? "infeasible" : trial.state;
}

export function Pareto(props: Props) {
    const { metrics, trials, across, up } = props;
    const frame = useRef<Frame | undefined>(undefined);
    const [tip, setTip] = useState<Trial>();
    const shown = useMemo(
        () => trials.filter((trial) => Number.isFinite(objectiveOf(trial, across)) && Number.isFinite(objectiveOf(trial, up)))
            .sort((a, b) => objectiveOf(a, across) - objectiveOf(b, across)),
        [trials, across, up],
    );
    // With more than two objectives the front's trials are no staircase in any two of them: the line is that of the two.
    const stairs = useMemo(() => frontOf(shown, metrics, [across, up]), [shown, metrics, across, up]);
    const scale = (k: number) => {
        const values = shown.map((trial) => objectiveOf(trial, k));
        return fitScale(props.isLog ? values : [...fence(values, metrics[k]!.goal), ...stairs.map((trial) => objectiveOf(trial, k))], props.isLog, 0.06);
    };
    const place = (f: Frame, trial: Trial): [number, number] => {
        const { left, top, width, height } = f.area;
        const x = Math.min(left + width, Math.max(left, f.x(objectiveOf(trial, across))));
        return [x, Math.min(top + height, Math.max(top, f.y(objectiveOf(trial, up))))];
    };

    const drawStairs = (pen: Pen, f: Frame) => {
        const { ctx } = pen;
        const { left, top, width, height } = f.area;
        const points = stairs.map((trial) => place(f, trial)).filter(([x, y]) => x === x && y === y);
        if (points.length === 0) return;
        const worstX = metrics[across]!.goal === "min" ? left + width : left;
        const worstY = metrics[up]!.goal === "min" ? top : top + height;
        ctx.beginPath();
        ctx.moveTo(points[0]![0], worstY);
        points.forEach(([x, y], i) => {
            if (i > 0) ctx.lineTo(x, points[i - 1]![1]);
            ctx.lineTo(x, y);
        });
        ctx.lineTo(worstX, points.at(-1)![1]);
        ctx.strokeStyle = ctx.fillStyle = pen.color("--best");
        ctx.lineWidth = 2;
        if (metrics.length > 2) ctx.setLineDash([5, 4]);
        ctx.stroke();
        ctx.setLineDash([]);
        // What is beaten lies behind the line.
        ctx.lineTo(worstX, worstY);
        ctx.globalAlpha = 0.06;
        ctx.fill();
        ctx.globalAlpha = 1;
    };
    const draw = (pen: Pen) => {
        const f = drawFrame(pen, scale(across), scale(up), axisTitle(metrics[across]!), axisTitle(metrics[up]!));
        frame.current = f;
        drawStairs(pen, f);
        const size = shown.length > 2000 ? 1.8 : shown.length > 300 ? 2.6 : 3.6;
        const drawAll = (isFront: boolean) => {
            for (const trial of shown) {
                const kind = kindOf(trial, props.front);
                const [x, y] = place(f, trial);
                if ((kind === "front") !== isFront || x !== x || y !== y) continue;
                pen.ctx.globalAlpha = !props.active.has(trial.number) ? 0.14 : kind === "complete" ? 0.55 : 1;
                drawMark(pen.ctx, kind, x, y, isFront ? Math.max(size, 3) + 1 : size, pen.color(`--${kind}`));
            }
        };
        drawAll(false);
        drawAll(true);
        pen.ctx.globalAlpha = 1;
        const hovered = shown.find((trial) => trial.number === props.hovered);
        if (hovered) ring(pen, ...place(f, hovered), size + 5);
    };
    const pick = (trial: Trial | undefined) => {
        setTip(trial);
        props.onHover(trial?.number);
    };
    const find = (x: number, y: number) => (frame.current ? nearest(shown, (trial) => place(frame.current!, trial), x, y) : undefined);
    const open = (trial: Trial | undefined) => {
        if (trial?.runId) props.onOpen(trial);
    };
    const at = tip && frame.current && place(frame.current, tip);
    const ofFront = shown.filter((trial) => props.front.has(trial.number));
    const summary = `${count(shown.length, "trial")} by ${metrics[across]!.name} and ${metrics[up]!.name}; ${props.front.size} in total ${props.front.size === 1 ? "is" : "are"} on the Pareto front.`;
    return (
        <Plot
            height={props.height}
            summary={summary}
            draw={draw}
            deps={[shown, stairs, props.front, props.active, props.isLog, props.hovered]}
            onMove={(x, y) => pick(find(x, y))}
            onLeave={() => pick(undefined)}
            onClick={(x, y) => open(find(x, y))}
            isHit={tip !== undefined}
            walk={{ across: shown, along: ofFront, at: tip, onPick: pick, onOpen: open }}
        >
            {tip && at && (
                <TrialTip
                    trial={tip}
                    kind={kindOf(tip, props.front)}
                    at={{ x: at[0], y: at[1] }}
                    width={frame.current!.area.left + frame.current!.area.width + 10}
                    rows={[
                        ...metrics.map((metric, k) => [metric.name, objectiveOf(tip, k)] as const),
                        ["beyond its bounds by", tip.violation || undefined],
                        ...Object.entries(tip.params).slice(0, kParamsShown).map(([name, value]) => [name, paramText(value)] as const),
                    ]}
                />
            )}
        </Plot>
    );
}
