// Which metrics come first wherever the page lists them: what the study optimises, how good the model is, then what
// else was logged, then bookkeeping (epoch, learning rate, time), then the machine. Names are all there is to go by.

/// Words that say how good a model is; also at the end of a word ("logloss", "mAP50").
const kQuality =
    /^(acc|auc|auroc|err|score|scores|precision|recall|f1|f2|fbeta|[rm]?mse|rmsle|ma[pe]|mape|m?ap\d*|r2|nll|elbo|ppl|bleu|rouge\w?|wer|cer|iou|miou|dice|psnr|ssim|fid|ndcg|mrr|top\d+|reward|rewards|return|returns|fitness|objective)$|(loss|losses|error|accuracy|entropy|perplexity)$/;
const kHeldOut = /^(val|valid|validation|test|eval|dev|holdout|heldout)$/;
const kBookkeeping =
    /^(epochs?|steps?|iter|iters|iterations?|batch|batches|lr|time|times|timestamp|runtime|duration|elapsed|seconds?|secs?|minutes?|hours?|m?s|eta|throughput|fps|progress)$/;

/// "trainLoss/fold-1" as ["train", "loss", "fold", "1"].
function words(name: string): string[] {
    return name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().split(/[^a-z0-9]+/);
}

/// What the machine and the tuner log by themselves.
export const isInternal = (name: string) => /^(system\/|tune\.)/.test(name);

/// 0 comes first. `leading`: the names that the study knows, objectives before constraints.
export function metricRank(name: string, leading: readonly string[]): number {
    const known = leading.indexOf(name);
    if (known >= 0) return known - leading.length;
    if (isInternal(name)) return 4;
    const all = words(name);
    if (all.some((word) => kQuality.test(word))) return all.some((word) => kHeldOut.test(word)) ? 0 : 1;
    if (all.some((word) => kBookkeeping.test(word)) || /learning.?rate|per.?sec/i.test(name)) return 3;
    return all.some((word) => kHeldOut.test(word)) ? 0 : 2;
}

const collator = new Intl.Collator("en", { numeric: true });

/// `names` with those first that a reader looks for; by name among equals. Costs one look at each name.
export function orderMetrics(names: Iterable<string>, leading: readonly string[] = []): string[] {
    return [...names]
        .map((name) => ({ name, rank: metricRank(name, leading) }))
        .sort((a, b) => a.rank - b.rank || collator.compare(a.name, b.name))
        .map((entry) => entry.name);
}

/// Objectives, then constraints, of the studies of a page.
export function leadingMetrics(studies: readonly { metric: { name: string }; metrics?: { name: string }[]; constraints?: { name: string }[] }[]): string[] {
    const names = (pick: (study: (typeof studies)[number]) => { name: string }[]) => studies.flatMap(pick).map(({ name }) => name);
    return [...new Set([...names((study) => study.metrics ?? [study.metric]), ...names((study) => study.constraints ?? [])])];
}
