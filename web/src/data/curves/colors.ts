// A hash of a run's id picks its colour, so a run has the same one on every page and visit, unless another run of the
// same chart has it already. Okabe and Ito's palette is safe for colour-blind readers; dashes tell apart runs that
// share a colour because there are more runs than colours.

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

/// Styles for `ids`, in order: no colour twice before all have been used. Of those that prefer the same, the first gets
/// it and the others the next free one; each further round through the palette has another dash.
export function lineStyles(ids: readonly string[]): LineStyle[] {
    const styles: LineStyle[] = [];
    for (let first = 0; first < ids.length; first += kPalette.length) {
        const round = ids.slice(first, first + kPalette.length).map(preferredStyle);
        const used = new Set(round);
        const dash = kDashes[(first / kPalette.length) % kDashes.length]!;
        round.forEach((color, i) => {
            if (round.indexOf(color) < i) {
                while (used.has(color)) color = (color + 1) % kPalette.length;
                used.add(color);
            }
            styles.push({ token: kPalette[color]!, dash });
        });
    }
    return styles;
}
