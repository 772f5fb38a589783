// MLflow's filter grammar, read and applied in the page: typing filters 100,000 runs at once and new runs
// appear as soon as they match. The same text works in `search_runs`, but for one addition: a param compared
// with an unquoted number is compared as a number.
//
//   filter := clause { AND clause }
//   clause := ident cmp value | ident [NOT] IN (value, ...) | ident IS [NOT] NULL
//   ident  := [metrics. | params. | tags. | attributes.] key      key bare, "..." or `...`
import { parseNumber, type RunTable } from "./columns.ts";

export class FilterError extends Error {
    constructor(
        message: string,
        /// Where in the text, from 0.
        readonly at: number,
    ) {
        super(message);
    }
}

type Entity = "metric" | "param" | "tag" | "attribute";
type Comparator = "=" | "!=" | "<" | "<=" | ">" | ">=" | "LIKE" | "ILIKE" | "IN" | "NOT IN" | "IS NULL" | "IS NOT NULL";

export interface Clause {
    entity: Entity;
    key: string;
    comparator: Comparator;
    value: string | number | string[] | undefined;
}

const kEntities: Record<string, Entity> = {
    metric: "metric", metrics: "metric",
    param: "param", params: "param", parameter: "param", parameters: "param",
    tag: "tag", tags: "tag",
    attribute: "attribute", attributes: "attribute", attr: "attribute", run: "attribute",
};
const kAttributes: Record<string, string> = {
    run_id: "run_id", run_name: "run_name", "run name": "run_name", "Run name": "run_name", "Run Name": "run_name",
    status: "status", artifact_uri: "artifact_uri", user_id: "user_id",
    start_time: "start_time", created: "start_time", Created: "start_time", end_time: "end_time",
};
const kNumericAttributes = new Set(["start_time", "end_time"]);

interface Token {
    kind: "word" | "name" | "string" | "number" | "operator" | "end";
    text: string;
    at: number;
}

const kToken = /\s*(?:('(?:[^'\\]|\\.|'')*')|("[^"]*"|`[^`]*`)|([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|([A-Za-z_][\w/@:-]*)|(<=|>=|!=|[=<>(),.])|(\S))/y;

function tokenize(text: string): Token[] {
    const tokens: Token[] = [];
    kToken.lastIndex = 0;
    while (kToken.lastIndex < text.length) {
        const start = kToken.lastIndex;
        const match = kToken.exec(text);
        if (!match) break; // blanks at the end
        const at = start + match[0].length - match[0].trimStart().length;
        const [, single, double, digits, word, operator, other] = match;
        if (other !== undefined)
            throw new FilterError(/['"`]/.test(other) ? "This quote is never closed." : `Unexpected '${other}'.`, at);
        if (single !== undefined) tokens.push({ kind: "string", text: single.slice(1, -1), at });
        else if (double !== undefined) tokens.push({ kind: "name", text: double.slice(1, -1), at });
        else if (digits !== undefined) tokens.push({ kind: "number", text: digits, at });
        else if (word !== undefined) tokens.push({ kind: "word", text: word, at });
        else tokens.push({ kind: "operator", text: operator!, at });
    }
    tokens.push({ kind: "end", text: "the end", at: text.length });
    return tokens;
}

class Parser {
    private next = 0;
    private readonly tokens: Token[];

    constructor(text: string) {
        this.tokens = tokenize(text);
    }

    filter(): Clause[] {
        const clauses: Clause[] = [];
        while (this.peek().kind !== "end") {
            clauses.push(this.clause());
            if (this.peek().kind === "end") break;
            if (this.isWord("OR")) this.fail("Only AND joins conditions; OR is not supported.");
            if (!this.takeWord("AND")) this.fail("Expected AND");
        }
        return clauses;
    }

    private peek(): Token {
        return this.tokens[Math.min(this.next, this.tokens.length - 1)]!;
    }
    private take(): Token {
        const token = this.peek();
        ++this.next;
        return token;
    }
    private fail(message: string, at = this.peek()): never {
        const found = at.kind === "end" ? "the text ends" : `found '${at.text}'`;
        throw new FilterError(message.endsWith(".") ? message : `${message}, but ${found}.`, at.at);
    }
    private isWord(word: string): boolean {
        return this.peek().kind === "word" && this.peek().text.toUpperCase() === word;
    }
    private takeWord(word: string): boolean {
        if (!this.isWord(word)) return false;
        ++this.next;
        return true;
    }
    private isOperator(text: string): boolean {
        return this.peek().kind === "operator" && this.peek().text === text;
    }

    private clause(): Clause {
        const start = this.peek();
        const { entity, key } = this.identifier();
        const comparator = this.comparator();
        const isNumeric = entity === "metric" || (entity === "attribute" && kNumericAttributes.has(key));
        const value = this.value(comparator, entity, isNumeric);
        if (isNumeric && /IN|LIKE|NULL/.test(comparator)) this.fail(`${comparator} does not work with numbers.`, start);
        const isOrder = /^[<>]/.test(comparator);
        if (isOrder && !isNumeric && typeof value !== "number")
            this.fail(`${comparator} compares numbers; use = or LIKE for text.`, start);
        return { entity, key, comparator, value };
    }

    private identifier(): { entity: Entity; key: string } {
        const first = this.take();
        if (first.kind !== "word" && first.kind !== "name") this.fail("Expected a name such as metrics.loss", first);
        if (!this.isOperator(".")) return { entity: "attribute", key: this.attribute(first) };
        ++this.next;
        const entity = Object.hasOwn(kEntities, first.text) ? kEntities[first.text] : undefined;
        if (!entity) this.fail(`'${first.text}' is none of metrics, params, tags, attributes.`, first);
        const token = this.take();
        if (token.kind === "operator" || token.kind === "end" || token.kind === "string") this.fail("Expected a key", token);
        if (entity === "attribute") return { entity, key: this.attribute(token) };
        let key = token.text;
        // A bare key may hold dots: tags.mlflow.user
        while (token.kind !== "name" && this.isOperator(".")) {
            ++this.next;
            key += `.${this.take().text}`;
        }
        return { entity, key };
    }

    private attribute(token: Token): string {
        if (Object.hasOwn(kAttributes, token.text)) return kAttributes[token.text]!;
        return this.fail(`There is no attribute '${token.text}'; write metrics.${token.text} or params.${token.text}.`, token);
    }

    private comparator(): Comparator {
        const token = this.take();
        if (token.kind === "operator" && /^(<=|>=|!=|=|<|>)$/.test(token.text)) return token.text as Comparator;
        const word = token.kind === "word" ? token.text.toUpperCase() : "";
        if (word === "LIKE" || word === "ILIKE" || word === "IN") return word;
        if (word === "NOT" && this.takeWord("IN")) return "NOT IN";
        if (word === "IS") {
            const isNot = this.takeWord("NOT");
            if (this.takeWord("NULL")) return isNot ? "IS NOT NULL" : "IS NULL";
        }
        return this.fail("Expected a comparison such as = or <", token);
    }

    private value(comparator: Comparator, entity: Entity, isNumeric: boolean): Clause["value"] {
        if (comparator === "IS NULL" || comparator === "IS NOT NULL") return undefined;
        if (comparator === "IN" || comparator === "NOT IN") return this.list();
        const token = this.take();
        if (token.kind === "number") {
            if (isNumeric || entity === "param") return Number(token.text);
            return this.fail("Expected text in quotes", token);
        }
        if (isNumeric) return this.fail("Expected a number", token);
        if (token.kind === "string") return unescape(token.text);
        if (token.kind === "name") return token.text;
        return this.fail("Expected text in quotes", token);
    }

    private list(): string[] {
        const values: string[] = [];
        if (!this.isOperator("(")) this.fail("Expected '(' after IN");
        do {
            ++this.next;
            if (values.length > 0 && this.isOperator(")")) break;
            const token = this.take();
            if (token.kind !== "string" && token.kind !== "name") this.fail("Expected text in quotes", token);
            values.push(unescape(token.text));
        } while (this.isOperator(","));
        if (!this.isOperator(")")) this.fail("Expected ',' or ')'");
        ++this.next;
        return values;
    }
}

function unescape(text: string): string {
    return text.replace(/''/g, "'");
}

/// The conditions of `text`, all of which must hold; none for an empty text. Throws FilterError.
export function parseFilter(text: string): Clause[] {
    return new Parser(text).filter();
}

/// SQL's LIKE: % any text, _ one character, no escape.
function likePattern(pattern: string, flags: string): RegExp {
    const body = pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/%/g, "[^]*").replace(/_/g, "[^]");
    return new RegExp(`^${body}$`, flags);
}

function reader(table: RunTable, clause: Clause): (row: number) => string | number | undefined {
    if (clause.entity === "metric") {
        const column = table.metrics.get(clause.key);
        return (row) => column?.[row];
    }
    if (clause.entity === "attribute") {
        const columns: Record<string, readonly (string | number | undefined)[]> = {
            run_id: table.ids, run_name: table.name, status: table.status, artifact_uri: table.artifactUri,
            user_id: table.user, start_time: table.start, end_time: table.end,
        };
        const column = columns[clause.key]!;
        return (row) => column[row];
    }
    const column = (clause.entity === "param" ? table.params : table.tags).get(clause.key);
    if (clause.entity === "param" && typeof clause.value === "number")
        return (row) => (column?.[row] === undefined ? undefined : parseNumber(column[row]));
    return (row) => column?.[row];
}

function predicate(clause: Clause): (value: string | number | undefined) => boolean {
    const { comparator, value } = clause;
    switch (comparator) {
        case "IS NULL": return (x) => x === undefined;
        case "IS NOT NULL": return (x) => x !== undefined;
        case "IN": return (x) => (value as string[]).includes(x as string);
        case "NOT IN": return (x) => x !== undefined && !(value as string[]).includes(x as string);
        case "LIKE":
        case "ILIKE": {
            const pattern = likePattern(String(value), comparator === "LIKE" ? "u" : "iu");
            return (x) => typeof x === "string" && pattern.test(x);
        }
        case "=": return (x) => x === value;
        case "!=": return (x) => x !== undefined && x !== value;
        case "<": return (x) => x !== undefined && x < value!;
        case "<=": return (x) => x !== undefined && x <= value!;
        case ">": return (x) => x !== undefined && x > value!;
        case ">=": return (x) => x !== undefined && x >= value!;
    }
}

/// The rows for which every clause holds. As in MLflow, a run without the key fails everything but IS NULL.
export function applyFilter(table: RunTable, rows: readonly number[], clauses: readonly Clause[]): number[] {
    let kept = [...rows];
    for (const clause of clauses) {
        const read = reader(table, clause);
        const holds = predicate(clause);
        kept = kept.filter((row) => holds(read(row)));
    }
    return kept;
}

/// Rows whose name, id, status, or any param or tag value holds every word of `text`, in any case.
export function quickFind(table: RunTable, rows: readonly number[], text: string): number[] {
    const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
    if (words.length === 0) return [...rows];
    const columns = [...table.params.values(), ...table.tags.values()];
    return rows.filter((row) => {
        let all = `${table.name[row]}\n${table.ids[row]}\n${table.status[row]}`;
        for (const column of columns) if (column[row] !== undefined) all += `\n${column[row]}`;
        const lower = all.toLowerCase();
        return words.every((word) => lower.includes(word));
    });
}
