// The `resources` section: what each process of a trial has to itself, and of how many processes
// on how many machines a trial consists.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/config/study_sections.h"
#include "tuner/options/bytes.h"
#include "tuner/options/fields.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kLabelsMax = 32;
constexpr std::size_t kLabelBytesMax = 100;
constexpr int kGpusMax = 1024;
constexpr int kCpusMax = 4096;
constexpr int kPoolMax = 1024;

constexpr std::string_view kBytesSchema =
    R"({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "auto"},
        {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? ?([KMGT](iB)?|[kMGT]?B)?$"}]})";

/// An amount of memory, or "auto".
struct Amount {
    std::int64_t bytes = 0;
    bool is_learned = false;
};

Result<Amount> read_amount(const Fields& fields, const char* key) {
    const Node* node = fields.find(key);
    if (node == nullptr) return Amount();
    const std::string path = fields.path_of(key);
    if (node->type == Node::Type::kString && node->text == "auto") return Amount{0, true};
    std::int64_t bytes = 0;
    if (node->type == Node::Type::kInt) {
        bytes = node->integer;
    } else if (node->type == Node::Type::kString) {
        const Result<std::int64_t> read = parse_bytes(node->text);
        if (!read) return error_at(node->place, path, read.error().message + ", or auto");
        bytes = *read;
    } else {
        return error_at(
            node->place, path,
            "expected an amount of memory such as 8GiB, or auto, found " + describe(*node));
    }
    if (bytes <= 0 || bytes > kBytesMax)
        return error_at(node->place, path, "expected more than 0 and at most 1024TiB");
    return Amount{bytes, false};
}

void write_amount(Json& json, const char* key, std::int64_t bytes, bool is_learned) {
    if (is_learned)
        json[key] = "auto";
    else if (bytes > 0)
        json[key] = bytes_text(bytes);
}

Result<void> read_labels(const Fields& fields, ResourcesConfig& resources) {
    const Node* node = fields.find("labels");
    if (node == nullptr) return {};
    const std::string path = fields.path_of("labels");
    const bool is_list = node->type == Node::Type::kList;
    std::vector<std::string> labels;
    for (const Node& item : is_list ? std::span(node->items) : std::span(node, 1)) {
        TUNE_TRY_VOID(check_text(item, path, kLabelBytesMax));
        if (item.text.empty() || item.text.find(',') != std::string::npos)
            return error_at(item.place, path, "a label is a word such as a100 or zone=eu");
        labels.push_back(item.text);
    }
    if (labels.size() > kLabelsMax)
        return error_at(node->place, path, "at most 32 labels are supported");
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    resources.labels = std::move(labels);
    return {};
}

void add_amounts(TableOf<ResourcesConfig>& table) {
    table
        .custom("memory",
                {.type = "amount of memory, or auto",
                 .schema = std::string(kBytesSchema),
                 .api = "text",
                 .read = [](const Fields& fields, ResourcesConfig& resources) -> Result<void> {
                     TUNE_TRY(amount, read_amount(fields, "memory"));
                     resources.memory_bytes = amount.bytes;
                     resources.learns_memory = amount.is_learned;
                     return {};
                 },
                 .write =
                     [](const ResourcesConfig& resources, Json& json) {
                         write_amount(json, "memory", resources.memory_bytes,
                                      resources.learns_memory);
                     }},
                "memory of the machine; auto: as much as the first trials used")
        .defaults_to("not counted");
    table
        .custom("gpu_memory",
                {.type = "amount of memory, or auto",
                 .schema = std::string(kBytesSchema),
                 .api = "text",
                 .read = [](const Fields& fields, ResourcesConfig& resources) -> Result<void> {
                     TUNE_TRY(amount, read_amount(fields, "gpu_memory"));
                     resources.gpu_memory_bytes = amount.bytes;
                     resources.learns_gpu_memory = amount.is_learned;
                     return {};
                 },
                 .write =
                     [](const ResourcesConfig& resources, Json& json) {
                         write_amount(json, "gpu_memory", resources.gpu_memory_bytes,
                                      resources.learns_gpu_memory);
                     }},
                "of each of its GPUs, which it then shares with other trials; auto: as much as the "
                "first trials, which have whole GPUs, used")
        .defaults_to("whole GPUs");
}

OptionTable resources_rows() {
    TableOf<ResourcesConfig> table;
    table.integer("cpus", &ResourcesConfig::cpus, 0, kCpusMax, "cores; 0: trials share the cores")
        .brief();
    add_amounts(table);
    table.integer("gpus", &ResourcesConfig::gpus, 0, kGpusMax, "GPUs").brief();
    table.custom("labels",
                 {.type = "word, or a list of words",
                  .schema = R"({"anyOf": [{"type": "string", "minLength": 1, "maxLength": 100},
                      {"type": "array", "maxItems": 32,
                       "items": {"type": "string", "minLength": 1, "maxLength": 100}}]})",
                  .api = "list of text",
                  .read = read_labels,
                  .write =
                      [](const ResourcesConfig& resources, Json& json) {
                          if (!resources.labels.empty()) json["labels"] = resources.labels;
                      }},
                 "the agent has all of these (tune agent --label)");
    table.integer("nproc", &ResourcesConfig::nproc, 1, kProcessesMax, "processes on each machine")
        .brief();
    table.integer("nnodes", &ResourcesConfig::nnodes, 1, kProcessesMax, "machines").brief();
    table
        .integer("processes", &ResourcesConfig::processes, 0, kProcessesMax,
                 "instead of nproc and nnodes: the number of processes, spread evenly over as few "
                 "machines as have room")
        .brief();
    table
        .integer("pool", &ResourcesConfig::pool, 0, kPoolMax,
                 "the command is a pool (docs/pools.md): one process with these resources runs "
                 "this many trials at once; 0: each trial is a process")
        .brief();
    table.check([](const Fields& fields, ResourcesConfig& resources) -> Result<void> {
        const bool is_shaped = resources.nproc > 1 || resources.nnodes > 1;
        if (resources.pool > 0 && (is_shaped || resources.processes > 0))
            return error_at(fields.node().place, fields.path(),
                            "the trials of a pool are threads of one process: give either pool, or "
                            "nproc, nnodes or processes");
        if (resources.pool > 0 && (resources.learns_memory || resources.learns_gpu_memory))
            return error_at(fields.node().place, fields.path(),
                            "what a trial of a pool uses cannot be told from its neighbours': say "
                            "how much memory the pool gets instead of auto");
        if (resources.processes > 0 && is_shaped)
            return error_at(fields.node().place, fields.path(),
                            "give either processes, or nproc and nnodes");
        if (resources.nproc * resources.nnodes > kProcessesMax)
            return error_at(fields.node().place, fields.path(),
                            "a trial has at most " + std::to_string(kProcessesMax) + " processes");
        const bool is_part = resources.gpu_memory_bytes > 0 || resources.learns_gpu_memory;
        if (is_part && resources.gpus == 0) resources.gpus = 1;
        return {};
    });
    return table;
}

}  // namespace

const OptionTable& resources_options() {
    static const OptionTable kOptions = resources_rows();
    return kOptions;
}

Result<void> read_resources(const Node& node, StudyConfig& config) {
    TUNE_TRY(fields, Fields::open(node, "resources", resources_options().names()));
    ResourcesConfig resources;
    TUNE_TRY_VOID(resources_options().read(fields, &resources));
    config.resources = std::move(resources);
    return {};
}

Json to_json(const ResourcesConfig& resources) {
    Json json = Json::object();
    resources_options().write(&resources, json);
    return json;
}

int cpus_of_process(const StudyConfig& config) {
    return std::max(config.resources.cpus, config.budget.cpus_per_trial);
}

int gpus_of_process(const StudyConfig& config) {
    return std::max(config.resources.gpus, config.budget.gpus_per_trial);
}

int processes_of(const ResourcesConfig& resources) {
    return std::max(resources.processes, resources.nproc * resources.nnodes);
}

}  // namespace tune::tuner
