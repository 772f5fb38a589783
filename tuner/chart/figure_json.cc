#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner/chart/figure.h"

namespace tune::chart {
namespace {

Json numbers(const std::vector<double>& values) {
    Json list = Json::array();
    for (const double value : values)
        list.push_back(std::isfinite(value) ? Json(value) : Json(nullptr));
    return list;
}

const char* name_of(ScaleKind kind) {
    switch (kind) {
        case ScaleKind::kLinear: return "linear";
        case ScaleKind::kLog: return "log";
        case ScaleKind::kCategory: return "category";
        case ScaleKind::kDuration: return "duration_s";
    }
    return "";
}

const char* name_of(Mark mark) {
    switch (mark) {
        case Mark::kPoints: return "points";
        case Mark::kLines: return "lines";
        case Mark::kSteps: return "steps";
        case Mark::kBars: return "bars";
        case Mark::kSpans: return "spans";
        case Mark::kAreas: return "areas";
    }
    return "";
}

Json axis_json(const Axis& axis) {
    Json json = {{"title", axis.title}, {"scale", name_of(axis.kind)}};
    if (axis.kind == ScaleKind::kCategory) {
        json["categories"] = axis.categories;
    } else {
        json["low"] = axis.low;
        json["high"] = axis.high;
    }
    return json;
}

Json layer_json(const Layer& layer) {
    Json json = {{"mark", name_of(layer.mark)}, {"x", numbers(layer.x)}, {"y", numbers(layer.y)}};
    if (!layer.name.empty()) json["name"] = layer.name;
    if (!layer.x2.empty()) json["x2"] = numbers(layer.x2);
    if (!layer.shade.empty()) json["shade"] = numbers(layer.shade);
    if (!layer.labels.empty()) json["labels"] = layer.labels;
    return json;
}

}  // namespace

Json to_json(const Figure& figure) {
    Json panels = Json::array();
    for (const Panel& panel : figure.panels) {
        Json layers = Json::array();
        for (const Layer& layer : panel.layers) layers.push_back(layer_json(layer));
        Json json = {{"x", axis_json(panel.x)}, {"layers", std::move(layers)}};
        if (!panel.title.empty()) json["title"] = panel.title;
        if (panel.columns.empty()) json["y"] = axis_json(panel.y);
        for (const Axis& axis : panel.columns) json["axes"].push_back(axis_json(axis));
        panels.push_back(std::move(json));
    }
    Json json = {{"title", figure.title}, {"note", figure.note}, {"panels", std::move(panels)}};
    if (!figure.bar.title.empty())
        json["colours"] = {
            {"title", figure.bar.title}, {"low", figure.bar.low}, {"high", figure.bar.high}};
    if (!figure.bar.edges.empty()) json["colours"]["edges"] = figure.bar.edges;
    return json;
}

}  // namespace tune::chart
