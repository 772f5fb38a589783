// The report of an import or export as text and as JSON, from the same struct and one table of
// counts. The verdict is a sentence of its own: what was verified, and what was not.

#include "tuner/cli/transfer/transfer_text.h"

#include <nlohmann/json.hpp>

#include "base/text/counted.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/transfer/transfer_progress.h"

namespace tune::cli {
namespace {

using tracker::TransferCounts;
using tracker::TransferReport;

struct CountName {
    const char* name;
    std::int64_t TransferCounts::*count;
};

constexpr CountName kCounts[] = {
    {"experiments", &TransferCounts::experiments},
    {"runs", &TransferCounts::runs},
    {"metric points", &TransferCounts::points},
    {"params", &TransferCounts::params},
    {"tags", &TransferCounts::tags},
    {"dataset inputs", &TransferCounts::inputs},
    {"model inputs and outputs", &TransferCounts::model_links},
    {"logged models", &TransferCounts::logged_models},
    {"registered models", &TransferCounts::registered_models},
    {"model versions", &TransferCounts::model_versions},
};

std::string lines_text(const char* title, const tracker::ReportLines& lines) {
    if (lines.count == 0) return {};
    std::string text = std::string(title) + " (" + std::to_string(lines.count) + "):\n";
    for (const std::string& line : lines.lines) text += "  " + printable(line) + "\n";
    const auto left = lines.count - static_cast<std::int64_t>(lines.lines.size());
    if (left > 0) text += "  and " + std::to_string(left) + " more\n";
    return text;
}

std::string verdict(const TransferReport& report) {
    const bool is_all = report.left_behind.empty() && report.files_left_out.count == 0;
    if (report.is_same() && !is_all)
        return "Verified: apart from what was left out, everything reads back as in the source.\n";
    if (report.is_same()) return "Verified: everything reads back as in the source.\n";
    if (report.is_whole())
        return "Verified except for the changed texts: everything else reads back as in the "
               "source.\n";
    if (report.mismatches.count > 0)
        return "NOT verified: some data reads back differently (see above).\n";
    return "Everything that was copied is verified; some data was not copied (see above).\n";
}

Json counts_json(const TransferCounts& counts) {
    Json json = Json::object();
    for (const CountName& one : kCounts) {
        std::string name = one.name;
        for (char& c : name)
            if (c == ' ') c = '_';
        json[name] = counts.*one.count;
    }
    return json;
}

Json lines_json(const tracker::ReportLines& lines) {
    return {{"count", lines.count}, {"first", lines.lines}};
}

}  // namespace

std::string report_text(const TransferReport& report, const char* done, const std::string& from,
                        const std::string& to) {
    std::string text = std::string(done) + " " + from + " -> " + to + "\n";
    Table table;
    table.column("", Table::Align::kLeft);
    table.column("source", Table::Align::kRight);
    table.column("read back", Table::Align::kRight);
    for (const CountName& one : kCounts)
        if (report.read.*one.count > 0 || report.stored.*one.count > 0)
            table.row({one.name, std::to_string(report.read.*one.count),
                       std::to_string(report.stored.*one.count)});
    if (!table.empty()) text += table.text();
    if (report.files > 0)
        text += counted(report.files, "artifact") + ", " + bytes_text(report.bytes) + " (" +
                std::to_string(report.files_new) + " of them moved now)\n";
    if (report.runs_unchanged > 0)
        text +=
            counted(report.runs_unchanged, "run was", "runs were") + " already here, unchanged\n";
    for (const tracker::MappedExperiment& mapped : report.mapped)
        text += "experiment " + std::to_string(mapped.from) + " '" + printable(mapped.from_name) +
                "' became " + std::to_string(mapped.to) + " '" + printable(mapped.to_name) +
                "': the id or name was taken\n";
    for (const tracker::LeftBehind& left : report.left_behind)
        text += "left behind: " + std::to_string(left.count) + " " + printable(left.what) + "\n";
    for (const std::string& note : report.notes) text += "note: " + printable(note) + "\n";
    if (report.texts_changed > 0)
        text += counted(report.texts_changed, "text was", "texts were") + " not UTF-8 and " +
                (report.texts_changed == 1 ? "was" : "were") +
                " changed: U+FFFD replaces each invalid byte\n";
    text += lines_text("artifacts left out", report.files_left_out);
    text += lines_text("not moved", report.failed);
    text += lines_text("read back differently", report.mismatches);
    return text + verdict(report);
}

Json report_json(const TransferReport& report) {
    Json json = {{"verified", report.is_same()},
                 {"source", counts_json(report.read)},
                 {"read_back", counts_json(report.stored)},
                 {"runs_unchanged", report.runs_unchanged},
                 {"texts_changed", report.texts_changed},
                 {"artifacts", report.files},
                 {"artifacts_new", report.files_new},
                 {"artifact_bytes", report.bytes},
                 {"failed", lines_json(report.failed)},
                 {"mismatches", lines_json(report.mismatches)},
                 {"artifacts_left_out", lines_json(report.files_left_out)},
                 {"notes", report.notes}};
    json["mapped_experiments"] = Json::array();
    for (const tracker::MappedExperiment& mapped : report.mapped)
        json["mapped_experiments"].push_back({{"from", std::to_string(mapped.from)},
                                              {"to", std::to_string(mapped.to)},
                                              {"from_name", mapped.from_name},
                                              {"to_name", mapped.to_name}});
    json["left_behind"] = Json::object();
    for (const tracker::LeftBehind& left : report.left_behind)
        json["left_behind"][left.what] = left.count;
    return json;
}

Result<tracker::ArtifactMode> artifact_mode(const std::string& word) {
    if (word == "copy") return tracker::ArtifactMode::kCopy;
    if (word == "link") return tracker::ArtifactMode::kLink;
    if (word == "none") return tracker::ArtifactMode::kNone;
    return Error{Code::kInvalidParameterValue,
                 "--artifacts is copy, link or none, not '" + word + "'"};
}

}  // namespace tune::cli
