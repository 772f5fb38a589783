// Every trial's curve of reported values. A pruned trial ends in a diamond: one sees where and why it was stopped.
import { useMemo, useRef, useState } from "preact/hooks";
import { count } from "../data/format.ts";
import { fitScale } from "../data/study/axes.ts";
import type { Trial } from "../data/study/study.ts";
import { drawFrame, drawMark, Plot, TrialTip, type Frame, type Pen } from "./canvas.tsx";

interface Props {
    trials: readonly Trial[];
    active: ReadonlySet<number>;
    best: number | undefined;
    metric: string;
    isLog: boolean;
    height: number;
    hovered: number | undefined;
    onHover: (trial: number | undefined) => void;
    onOpen: (trial: Trial) => void;
}

function trace(ctx: CanvasRenderingContext2D, frame: Frame, trial: Trial): void {
    ctx.beginPath();
    let isDown = false;
    trial.steps.forEach((step, i) => {
        const y = frame.y(trial.values[i]!);
        if (!Number.isFinite(y)) {
            isDown = false;
            return;
        }
        if (isDown) ctx.lineTo(frame.x(step), y);
        else ctx.moveTo(frame.x(step), y);
        isDown = true;
    });
    ctx.stroke();
}

function robust(trials: readonly Trial[]): number[] {
    const all = trials.flatMap((trial) => trial.values).filter(Number.isFinite).sort((a, b) => a - b);
    if (all.length < 20) return all;
    const at = (q: number) => all[Math.floor(q * (all.length - 1))]!;
    const reach = 5 * (at(0.75) - at(0.25)) || Infinity;
    return all.filter((v) => v <= at(0.75) + reach && v >= at(0.25) - reach);
}

export function Intermediate(props: Props) {
    const frame = useRef<Frame | undefined>(undefined);
    const [tip, setTip] = useState<{ trial: Trial; index: number; x: number; y: number; width: number }>();
    const shown = useMemo(() => props.trials.filter((trial) => trial.steps.length > 0), [props.trials]);
    const low = shown.reduce((least, trial) => Math.min(least, trial.steps[0]!), 0);
    const high = shown.reduce((most, trial) => Math.max(most, trial.steps.at(-1)!), low + 1);
    const yScale = useMemo(
        () => fitScale(props.isLog ? shown.flatMap((t) => t.values) : robust(shown), props.isLog, 0.05),
        [shown, props.isLog],
    );

    const style = (pen: Pen, trial: Trial) => {
        const isFront = trial.number === props.hovered || trial.number === props.best;
        pen.ctx.globalAlpha = isFront ? 1 : !props.active.has(trial.number) ? 0.06 : shown.length > 150 ? 0.3 : 0.55;
        pen.ctx.lineWidth = trial.number === props.hovered ? 2.6 : trial.number === props.best ? 2.2 : 1.1;
        return pen.color(trial.number === props.best ? "--best" : `--${trial.state}`);
    };
    const draw = (pen: Pen) => {
        const f = drawFrame(pen, { kind: "linear", low, high, isWhole: true }, yScale, "step");
        frame.current = f;
        const { ctx } = pen;
        ctx.save();
        ctx.beginPath();
        ctx.rect(f.area.left, f.area.top - 6, f.area.width + 8, f.area.height + 12);
        ctx.clip();
        ctx.lineJoin = "round";
        const front = (trial: Trial) => (trial.number === props.hovered ? 2 : trial.number === props.best ? 1 : 0);
        for (const trial of [...shown].sort((a, b) => front(a) - front(b))) {
            const color = style(pen, trial);
            ctx.strokeStyle = color;
            trace(ctx, f, trial);
            if (props.active.has(trial.number)) ctx.globalAlpha = Math.max(ctx.globalAlpha, 0.8);
            const at = trial.steps.length - 1;
            const y = f.y(trial.values[at]!);
            if (Number.isFinite(y) && trial.state !== "complete") drawMark(ctx, trial.state, f.x(trial.steps[at]!), y, 3, color);
            else if (Number.isFinite(y) && at === 0) drawMark(ctx, trial.state, f.x(trial.steps[0]!), y, 2, color);
        }
        ctx.restore();
    };
    const onMove = (x: number, y: number) => {
        const f = frame.current;
        if (!f) return;
        let found: typeof tip;
        let distance = 20 ** 2;
        for (const trial of shown) {
            if (!props.active.has(trial.number)) continue;
            for (let i = 0; i < trial.steps.length; ++i) {
                const px = f.x(trial.steps[i]!);
                const py = f.y(trial.values[i]!);
                const d = (px - x) ** 2 + (py - y) ** 2;
                if (d < distance) {
                    distance = d;
                    found = { trial, index: i, x: px, y: py, width: f.area.left + f.area.width + 10 };
                }
            }
        }
        setTip(found);
        props.onHover(found?.trial.number);
    };
    const pruned = shown.filter((trial) => trial.state === "pruned").length;
    return (
        <Plot
            height={props.height}
            summary={`Reported values of ${count(shown.length, "trial")} over steps ${low} to ${high}; ${pruned} ${pruned === 1 ? "was" : "were"} pruned.`}
            draw={draw}
            deps={[shown, props.active, props.best, props.isLog, props.hovered]}
            onMove={onMove}
            onLeave={() => {
                setTip(undefined);
                props.onHover(undefined);
            }}
            onClick={() => {
                if (tip?.trial.runId) props.onOpen(tip.trial);
            }}
            isHit={tip !== undefined}
        >
            {tip && <TrialTip trial={tip.trial} at={tip} width={tip.width} rows={[["step", tip.trial.steps[tip.index]], [props.metric, tip.trial.values[tip.index]]]} />}
        </Plot>
    );
}
