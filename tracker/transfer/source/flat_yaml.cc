// meta.yaml files are flat maps. They are read by the parser's events, without a tree; anchors and
// aliases are refused as they come, so no document can expand beyond its own size.

#include "tracker/transfer/source/flat_yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <sstream>

#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

/// Thrown out of the handler, caught in read_flat_yaml.
struct Refusal {
    YAML::Mark mark;
    const char* text;
};

class FlatReader final : public YAML::EventHandler {
public:
    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnAnchor(const YAML::Mark& mark, const std::string&) override {
        throw Refusal{mark, "anchors are not supported"};
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        throw Refusal{mark, "aliases are not supported"};
    }
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        refuse(mark, anchor);
        take(nullptr);
    }
    void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  const std::string& value) override {
        refuse(mark, anchor);
        if (depth_ == 0) throw Refusal{mark, "a map is expected"};
        take(&value);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        refuse(mark, anchor);
        if (depth_ == 0) throw Refusal{mark, "a map is expected"};
        ++depth_;
        ++lists_;
    }
    void OnSequenceEnd() override {
        --lists_;
        close();
    }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        refuse(mark, anchor);
        if (depth_ == 1 && has_key_) outer_key_ = key_;
        ++depth_;
        if (depth_ == 2 && lists_ == 0) has_key_ = false;
    }
    void OnMapEnd() override { close(); }

    FlatYaml fields;

private:
    static void refuse(const YAML::Mark& mark, YAML::anchor_t anchor) {
        if (anchor != YAML::NullAnchor) throw Refusal{mark, "anchors are not supported"};
    }

    /// A scalar: a key and a value in turn, in the two outer maps.
    void take(const std::string* value) {
        if (lists_ > 0 || depth_ > 2 || depth_ == 0) return;
        if (!has_key_) {
            key_ = value == nullptr ? std::string() : *value;
            has_key_ = true;
            return;
        }
        has_key_ = false;
        if (value == nullptr) return;
        if (depth_ == 1)
            fields.scalars[key_] = *value;
        else
            fields.maps[outer_key_][key_] = *value;
    }

    /// A map or list that was a value is at its end.
    void close() {
        --depth_;
        if (depth_ <= 2) has_key_ = false;
    }

    int depth_ = 0;
    int lists_ = 0;
    bool has_key_ = false;
    std::string key_;
    std::string outer_key_;
};

Error at(const YAML::Mark& mark, const std::string& text) {
    std::string place;
    if (!mark.is_null())
        place = "line " + std::to_string(mark.line + 1) + ", column " +
                std::to_string(mark.column + 1) + ": ";
    return {Code::kDataLoss, place + text};
}

}  // namespace

std::string FlatYaml::text(std::string_view name) const {
    return optional_text(name).value_or("");
}

std::optional<std::string> FlatYaml::optional_text(std::string_view name) const {
    const auto found = scalars.find(name);
    if (found == scalars.end()) return std::nullopt;
    return found->second;
}

std::optional<std::int64_t> FlatYaml::integer(std::string_view name) const {
    const auto found = scalars.find(name);
    std::int64_t number = 0;
    if (found == scalars.end() || !parse_number(std::string_view(found->second), number))
        return std::nullopt;
    return number;
}

Result<FlatYaml> read_flat_yaml(const std::string& text) {
    std::istringstream in(text);
    FlatReader reader;
    try {
        YAML::Parser parser(in);
        if (!parser.HandleNextDocument(reader)) return Error{Code::kDataLoss, "the file is empty"};
    } catch (const Refusal& refusal) {
        return at(refusal.mark, refusal.text);
    } catch (const YAML::Exception& error) {
        return at(error.mark, error.msg);
    }
    return std::move(reader.fields);
}

}  // namespace tune::tracker
