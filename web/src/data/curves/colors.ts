// A run keeps its colour in every view and on every visit: a hash of its id picks it. Okabe and Ito's
// palette is safe for colour-blind readers; dashes tell apart runs that share a colour.

/// Tokens, each with a light and a dark value in styles/tokens.css.
export const kPalette = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6"] as const;
const kDashes: readonly (readonly number[])[] = [[], [6, 3], [2, 3], [9, 3, 2, 3]];

/// FNV-1a, 32 bits, with MurmurHash3's finish: similar ids get unrelated colours.
export function hash(text: string): number {
    let h = 0x811c9dc5;
    for (let i = 0; i < text.length; ++i) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    return (h ^ (h >>> 16)) >>> 0;
}

export interface LineStyle {
    token: string;
    dash: readonly number[];
}

export function preferredStyle(id: string): number {
    return hash(id) % kPalette.length;
}

/// Styles for `ids`, in order: each its own colour where possible; of those that meet, the later get
/// another dash.
export function lineStyles(ids: readonly string[]): LineStyle[] {
    const used = new Map<number, number>();
    return ids.map((id) => {
        const color = preferredStyle(id);
        const turn = used.get(color) ?? 0;
        used.set(color, turn + 1);
        return { token: kPalette[color]!, dash: kDashes[turn % kDashes.length]! };
    });
}
