// A canvas that fits its place: sharp on every screen, redrawn when its size, its data or the theme changes.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { number } from "../data/format.ts";
import { position, ticks, type Scale } from "../data/study/axes.ts";
import { themeVersion, token } from "../data/page/theme.ts";
import type { Trial } from "../data/study/study.ts";
import type { ComponentChildren } from "preact";

export interface Area {
    left: number;
    top: number;
    width: number;
    height: number;
}

export interface Ink {
    text: string;
    faint: string;
    line: string;
    surface: string;
}

export interface Pen {
    ctx: CanvasRenderingContext2D;
    width: number;
    height: number;
    ink: Ink;
    color: (token: string) => string;
}

export const kFont = '11px Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';

function makePen(canvas: HTMLCanvasElement, width: number, height: number): Pen {
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const ctx = canvas.getContext("2d")!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = kFont;
    const known = new Map<string, string>();
    const color = (name: string) => {
        if (!known.has(name)) known.set(name, token(name));
        return known.get(name)!;
    };
    const ink = { text: color("--muted"), faint: color("--faint"), line: color("--line"), surface: color("--surface") };
    return { ctx, width, height, ink, color };
}

/// Trials that the arrow keys go through: left and right those of `across`, up and down those of `along`, or `across` again.
export interface Walk {
    across: readonly Trial[];
    along?: readonly Trial[];
    at: Trial | undefined;
    onPick: (trial: Trial | undefined) => void;
    onOpen: (trial: Trial) => void;
}

/// Whether the key was one of the walk's. From nowhere, or from a trial of the other list, the first step goes to an end.
function step(walk: Walk, key: string): boolean {
    if (key === "Enter" && walk.at) {
        walk.onOpen(walk.at);
        return true;
    }
    if (key === "Escape") {
        walk.onPick(undefined);
        return true;
    }
    const isEnd = key === "Home" || key === "End";
    const by = key === "ArrowRight" || key === "ArrowUp" || key === "End" ? 1 : -1;
    if (!isEnd && !/^Arrow(Left|Right|Up|Down)$/.test(key)) return false;
    const list = (/(Up|Down)$/.test(key) && walk.along) || walk.across;
    const from = isEnd ? -1 : list.findIndex((trial) => trial.number === walk.at?.number);
    const to = isEnd ? (by > 0 ? list.length - 1 : 0) : from < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, from + by));
    if (list[to]) walk.onPick(list[to]);
    return true;
}

export interface PlotProps {
    height: number;
    /// What the picture shows, in a sentence: for those who cannot see it.
    summary: string;
    /// Draws everything; called again when `deps`, size or theme change.
    draw: (pen: Pen) => void;
    deps: readonly unknown[];
    onMove?: (x: number, y: number) => void;
    onLeave?: () => void;
    onDown?: (x: number, y: number, event: PointerEvent) => void;
    onUp?: (x: number, y: number) => void;
    onClick?: (x: number, y: number) => void;
    isHit?: boolean;
    /// With it the picture takes the keyboard, and what stands in `children` is read out.
    walk?: Walk;
    children?: ComponentChildren;
}

/// The width is that of the parent.
export function Plot(props: PlotProps) {
    const frame = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const [width, setWidth] = useState(0);
    useLayoutEffect(() => {
        const observer = new ResizeObserver(() => setWidth(frame.current?.clientWidth ?? 0));
        observer.observe(frame.current!);
        setWidth(frame.current!.clientWidth);
        return () => observer.disconnect();
    }, []);
    const look = themeVersion.value;
    // Before any event: keys and pointers are answered from where things were drawn.
    useLayoutEffect(() => {
        if (canvas.current && width > 0) props.draw(makePen(canvas.current, width, props.height));
    }, [width, props.height, look, ...props.deps]);
    const at = (event: MouseEvent): [number, number] => {
        const box = canvas.current!.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
    };
    return (
        <div class="plot" ref={frame} style={{ height: `${props.height}px` }}>
            <canvas
                ref={canvas}
                role={props.walk ? "application" : "img"}
                aria-roledescription={props.walk && "chart"}
                aria-label={props.summary + (props.walk ? " Arrow keys move between trials, Enter opens the run." : "")}
                tabIndex={props.walk && 0}
                onKeyDown={(event) => {
                    if (props.walk && !event.ctrlKey && !event.metaKey && !event.altKey && step(props.walk, event.key)) event.preventDefault();
                }}
                onBlur={() => props.onLeave?.()}
                class={props.isHit ? "hit" : ""}
                onPointerMove={(event) => props.onMove?.(...at(event))}
                onPointerLeave={() => props.onLeave?.()}
                onPointerDown={(event) => {
                    if (!props.onDown) return;
                    (event.currentTarget as Element).setPointerCapture(event.pointerId);
                    props.onDown(...at(event), event);
                }}
                onPointerUp={(event) => props.onUp?.(...at(event))}
                onClick={(event) => props.onClick?.(...at(event))}
            />
            {props.walk ? <div role="status">{props.children}</div> : props.children}
        </div>
    );
}

export function tickText(value: number | string): string {
    return typeof value === "number" ? number(value, 3) : value;
}

export interface Frame {
    area: Area;
    x: (value: number) => number;
    y: (value: number) => number;
}

/// Grid lines, tick labels and axis titles; returns where data goes.
export function drawFrame(pen: Pen, xScale: Scale, yScale: Scale, xTitle: string, yTitle = ""): Frame {
    const { ctx, ink } = pen;
    const yTicks = ticks(yScale, Math.max(3, Math.floor(pen.height / 48)));
    const widest = Math.max(...yTicks.map((tick) => ctx.measureText(tickText(tick)).width), 16);
    const area = { left: Math.ceil(widest) + (yTitle ? 28 : 12), top: 8, width: 0, height: pen.height - 8 - 36 };
    area.width = Math.max(10, pen.width - area.left - 10);
    const x = (value: number) => area.left + position(xScale, value) * area.width;
    const y = (value: number) => area.top + (1 - position(yScale, value)) * area.height;
    ctx.lineWidth = 1;
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    for (const tick of yTicks) {
        const at = Math.round(y(tick as number)) + 0.5;
        if (at < area.top - 1 || at > area.top + area.height + 1) continue;
        ctx.strokeStyle = ink.line;
        ctx.beginPath();
        ctx.moveTo(area.left, at);
        ctx.lineTo(area.left + area.width, at);
        ctx.stroke();
        ctx.fillStyle = ink.faint;
        ctx.fillText(tickText(tick), area.left - 7, at);
    }
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    ctx.fillStyle = ink.faint;
    for (const tick of ticks(xScale, Math.max(2, Math.floor(area.width / 90)))) {
        const at = x(tick as number);
        if (at < area.left - 1 || at > area.left + area.width + 1) continue;
        ctx.fillText(tickText(tick), at, area.top + area.height + 6);
    }
    ctx.fillText(xTitle, area.left + area.width / 2, area.top + area.height + 21);
    if (yTitle) {
        ctx.save();
        ctx.translate(2, area.top + area.height / 2);
        ctx.rotate(-Math.PI / 2);
        ctx.fillText(yTitle, 0, 0);
        ctx.restore();
    }
    return { area, x, y };
}

/// Around the trial that the pointer or the keyboard is at.
export function ring(pen: Pen, x: number, y: number, radius: number): void {
    pen.ctx.strokeStyle = pen.color("--text");
    pen.ctx.lineWidth = 1.5;
    pen.ctx.beginPath();
    pen.ctx.arc(x, y, radius, 0, 7);
    pen.ctx.stroke();
}

/// The mark of a trial by its state: a disc, also on the front; a hollow diamond for pruned; a cross for failed; a hollow
/// triangle for infeasible; a ring for running.
export function drawMark(ctx: CanvasRenderingContext2D, state: string, x: number, y: number, size: number, color: string): void {
    ctx.strokeStyle = color;
    ctx.fillStyle = color;
    ctx.lineWidth = 1.6;
    ctx.beginPath();
    if (state === "complete" || state === "front") {
        ctx.arc(x, y, size, 0, 7);
        ctx.fill();
        return;
    }
    if (state === "pruned") {
        const r = size * 1.25;
        ctx.moveTo(x, y - r);
        ctx.lineTo(x + r, y);
        ctx.lineTo(x, y + r);
        ctx.lineTo(x - r, y);
        ctx.closePath();
    } else if (state === "infeasible") {
        ctx.moveTo(x, y - size * 1.2);
        ctx.lineTo(x + size * 1.1, y + size * 0.8);
        ctx.lineTo(x - size * 1.1, y + size * 0.8);
        ctx.closePath();
    } else if (state === "failed") {
        ctx.moveTo(x - size, y - size);
        ctx.lineTo(x + size, y + size);
        ctx.moveTo(x + size, y - size);
        ctx.lineTo(x - size, y + size);
    } else {
        ctx.arc(x, y, size, 0, 7);
    }
    ctx.stroke();
}

/// The same marks for legends.
export function Mark({ state }: { state: string }) {
    const color = `var(--${state})`;
    const stroke = { fill: "none", stroke: color, "stroke-width": 1.6 };
    return (
        <svg width="11" height="11" viewBox="-5.5 -5.5 11 11" aria-hidden="true">
            {state === "complete" && <circle r="3.6" fill={color} />}
            {state === "pruned" && <path d="M0-4.2 4.2 0 0 4.2-4.2 0z" {...stroke} />}
            {state === "front" && <circle r="4.4" fill={color} />}
            {state === "infeasible" && <path d="M0-4 4 3.2H-4z" {...stroke} />}
            {state === "failed" && <path d="m-3.2-3.2 6.4 6.4m0-6.4-6.4 6.4" {...stroke} />}
            {(state === "running" || state === "queued" || state === "cancelled") && <circle r="3.4" {...stroke} />}
            {state === "best" && <path d="M-5 0H5" stroke={color} stroke-width="2.2" />}
        </svg>
    );
}

export interface TipAt {
    x: number;
    y: number;
}

/// A box beside the pointer that stays inside the plot.
export function Tip({ at, width, children }: { at: TipAt; width: number; children: ComponentChildren }) {
    const isRight = at.x > width * 0.6;
    const style = isRight ? { right: `${width - at.x + 12}px`, top: `${at.y}px` } : { left: `${at.x + 12}px`, top: `${at.y}px` };
    return <div class="tip" style={style}>{children}</div>;
}

/// What a trial is and has, beside its mark; rows without a value are left out.
export function TrialTip({ trial, kind = trial.state, rows, ...place }: { trial: Trial; kind?: string; rows: readonly (readonly [string, number | string | undefined])[]; at: TipAt; width: number }) {
    return (
        <Tip {...place}>
            <b>Trial {trial.number}</b> <span class="faint">{kind}</span>
            <table>
                <tbody>
                    {rows.map(([name, value]) => value !== undefined && (
                        <tr key={name}><td class="muted">{name}</td><td>{typeof value === "number" ? number(value, 5) : value}</td></tr>
                    ))}
                </tbody>
            </table>
        </Tip>
    );
}

/// The trial whose mark is the nearest one within 24 px.
export function nearest(trials: readonly Trial[], place: (trial: Trial) => [number, number], x: number, y: number): Trial | undefined {
    let found: Trial | undefined;
    let distance = 24 ** 2;
    for (const trial of trials) {
        const [px, py] = place(trial);
        const d = (px - x) ** 2 + (py - y) ** 2;
        if (d < distance) [found, distance] = [trial, d];
    }
    return found;
}
