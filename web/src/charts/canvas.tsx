// A canvas that fits its place: sharp on every screen, redrawn when its size, its data or the theme changes.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { number } from "../data/format.ts";
import { position, ticks, type Scale } from "../data/axes.ts";
import { themeVersion, token } from "../data/theme.ts";
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
    useEffect(() => {
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
                role="img"
                aria-label={props.summary}
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
            {props.children}
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
export function drawFrame(pen: Pen, xScale: Scale, yScale: Scale, xTitle: string): Frame {
    const { ctx, ink } = pen;
    const yTicks = ticks(yScale, Math.max(3, Math.floor(pen.height / 48)));
    const widest = Math.max(...yTicks.map((tick) => ctx.measureText(tickText(tick)).width), 16);
    const area = { left: Math.ceil(widest) + 12, top: 8, width: 0, height: pen.height - 8 - 36 };
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
    return { area, x, y };
}

/// The mark of a trial by its state: a disc; a hollow diamond for pruned; a cross for failed; a ring for running.
export function drawMark(ctx: CanvasRenderingContext2D, state: string, x: number, y: number, size: number, color: string): void {
    ctx.strokeStyle = color;
    ctx.fillStyle = color;
    ctx.lineWidth = 1.6;
    ctx.beginPath();
    if (state === "complete") {
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
