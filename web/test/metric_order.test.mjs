import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { orderMetrics, leadingMetrics } = await load("data/runs/metric_order.ts");

test("what a trial of the digits example logs: the objective first, the machine last", () => {
    const logged = ["batch_size", "epoch", "images_per_s", "lr", "lr_effective", "system/cpu_utilization_percentage", "train_loss", "val_accuracy", "val_loss"];
    assert.deepEqual(orderMetrics(logged, ["val_accuracy"]), [
        "val_accuracy", "val_loss", "train_loss", "batch_size", "epoch", "images_per_s", "lr", "lr_effective", "system/cpu_utilization_percentage",
    ]);
});

test("objectives stand in their order, then constraints, whatever their names", () => {
    const leading = leadingMetrics([
        { metric: { name: "time" }, metrics: [{ name: "time" }, { name: "loss" }], constraints: [{ name: "system/memory" }] },
        { metric: { name: "loss" } },
    ]);
    assert.deepEqual(leading, ["time", "loss", "system/memory"]);
    assert.deepEqual(orderMetrics(["acc", "epoch", "loss", "system/memory", "time"], leading), ["time", "loss", "system/memory", "acc", "epoch"]);
});

test("without a study: held-out quality, quality, other metrics, bookkeeping, system", () => {
    const groups = [
        ["eval_loss", "test/roc_auc", "val_mae", "valAcc"],
        ["f1", "logloss", "mAP50", "perplexity", "train_loss_epoch", "training_accuracy_score", "training_r2"],
        ["grad_norm", "kl", "weight_decay"],
        ["elapsed", "epoch", "eval_runtime", "eval_samples_per_second", "learning_rate", "lr-Adam", "step"],
        ["system/gpu_0_utilization", "system/loss_of_packets", "tune.value"],
    ];
    const shuffled = groups.flat().sort((a, b) => (a.length * 7) % 5 - ((b.length * 7) % 5));
    const ordered = orderMetrics(shuffled);
    let from = 0;
    for (const group of groups) {
        assert.deepEqual(new Set(ordered.slice(from, from + group.length)), new Set(group));
        from += group.length;
    }
    assert.deepEqual(orderMetrics(["loss_fold10", "loss_fold9"]), ["loss_fold9", "loss_fold10"]);
});
