// Searches of a large model registry: 10,000 models of 10 versions and 1,000 prompts of 3. One JSON
// line a figure on stdout. Usage: registry_bench [DIRECTORY], which must be empty.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "tracker/store/registry/registry.h"
#include "tracker/store/store.h"

namespace tune::tracker {
namespace {

using Timer = std::chrono::steady_clock;
constexpr int kModels = 10'000;
constexpr int kVersions = 10;
constexpr int kPrompts = 1'000;
constexpr int kPromptVersions = 3;
constexpr int kRounds = 101;
constexpr double kTarget_ms = 3;

template <class T>
T must(Result<T> result) {
    if (result) return std::move(*result);
    std::fprintf(stderr, "registry_bench: %s\n", result.error().text().c_str());
    std::exit(1);
}

double ms_since(Timer::time_point start) {
    return std::chrono::duration<double, std::milli>(Timer::now() - start).count();
}

void report(const std::string& name, double value, const char* unit, double target) {
    const Json line = {
        {"name", name}, {"value", value}, {"unit", unit}, {"better", "less"}, {"target", target}};
    std::printf("%s\n", to_text(line).c_str());
    std::fflush(stdout);
}

std::string name_of(const char* kind, int i) {
    char text[32];
    std::snprintf(text, sizeof(text), "%s-%05d", kind, i);
    return text;
}

void fill(Store& store, const char* kind, int models, int versions, const std::string& source,
          const std::vector<Tag>& tags) {
    constexpr int kModelsAtOnce = 100;
    for (int first = 0; first < models; first += kModelsAtOnce) {
        Atomic atomic;
        for (int i = first; i < first + kModelsAtOnce; ++i) {
            const std::string name = name_of(kind, i);
            atomic.commands.emplace_back(
                RegistryCommand(CreateRegisteredModel{name, tags, "a model"}));
            for (int v = 0; v < versions; ++v) {
                CreateModelVersion version{.name = name, .source = source};
                version.tags = tags;
                version.tags.push_back({"n", std::to_string(v)});
                atomic.commands.emplace_back(RegistryCommand(std::move(version)));
            }
        }
        must(store.execute(std::move(atomic)));
    }
}

/// p50 of `search`, which gives the number of rows it found.
template <class Search>
void measure(const std::string& name, std::size_t rows, Search search) {
    std::vector<double> times;
    for (int round = 0; round < kRounds; ++round) {
        const auto start = Timer::now();
        const std::size_t found = search();
        times.push_back(ms_since(start));
        if (found == rows) continue;
        std::fprintf(stderr, "registry_bench: %s found %zu rows\n", name.c_str(), found);
        std::exit(1);
    }
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    report(name + ", p50", times[kRounds / 2], "ms", kTarget_ms);
}

void measure_models(const Store& store) {
    SearchRegisteredModels query;
    const auto search = [&store, &query] {
        return must(search_registered_models(store, query)).items.size();
    };
    measure("registered models, page of 100", 100, search);
    query.order_by = {"timestamp DESC"};
    measure("registered models by time, page of 100", 100, search);
    query = {.filter = "name LIKE 'model-099%'"};
    measure("registered models by pattern, 100 of 10,000", 100, search);
    query = {.filter = "name = 'model-05000'", .order_by = {"timestamp"}};
    measure("one registered model by name", 1, search);
    query = {.filter = "tags.`mlflow.prompt.is_prompt` = 'true'"};
    measure("prompts, page of 100", 100, search);
    query = {};
    for (int page = 0; page < 90; ++page)
        query.page_token = must(search_registered_models(store, query)).next_page_token;
    measure("registered models, 91st page of 100", 100, search);
}

void measure_versions(const Store& store) {
    SearchModelVersions query{.max_results = 100};
    const auto search = [&store, &query] {
        return must(search_model_versions(store, query)).items.size();
    };
    measure("model versions, page of 100 of 100,000", 100, search);
    for (int page = 0; page < 900; ++page)
        query.page_token = must(search_model_versions(store, query)).next_page_token;
    measure("model versions, 901st page of 100", 100, search);
    query = {.filter = "name = 'model-05000'", .max_results = 100};
    measure("versions of one model", kVersions, search);
    query = {.filter = "run_id = 'none'", .max_results = 100};
    measure("versions of one run", 0, search);
}

void run(const std::filesystem::path& directory) {
    StoreOptions options;
    options.directory = directory;
    const std::unique_ptr<Store> store = must(Store::open(options));
    const auto start = Timer::now();
    fill(*store, "model", kModels, kVersions, "s3://bucket/path", {});
    fill(*store, "prompt", kPrompts, kPromptVersions, "dummy-source",
         {{std::string(kIsPromptTag), "true"}});
    report("filling the registry", ms_since(start) / 1000, "s", 60);
    measure_models(*store);
    measure_versions(*store);
    store->stop();
}

}  // namespace
}  // namespace tune::tracker

int main(int argc, char** argv) {
    namespace fs = std::filesystem;
    std::string pattern = (fs::temp_directory_path() / "registry-bench-XXXXXX").string();
    const fs::path directory = argc > 1 ? fs::path(argv[1]) : fs::path(mkdtemp(pattern.data()));
    tune::tracker::run(directory);
    if (argc <= 1) fs::remove_all(directory);
    return 0;
}
