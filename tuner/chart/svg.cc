// A scene as SVG, one element a shape, without scripts, links or fonts of its own: the file needs
// nothing beside it.
//
// Attributes hold the light colours; without a fixed theme a style sheet in the file replaces those
// of roles by the dark ones for readers who prefer that. All texts come from users: they are
// escaped here, and the layout has removed control characters. Two decimals of a pixel are more
// than can be seen, and keep files small.

#include "tuner/chart/svg.h"

#include <cstdio>

namespace tune::chart {
namespace {

constexpr const char* kFont = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif";

/// At most 2 decimals, no trailing zeros.
std::string pixel(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", value);
    std::string out = text;
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
    return out == "-0" ? "0" : out;
}

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else
            out += c;
    }
    return out;
}

class Writer {
public:
    Writer(const Scene& scene, std::optional<Theme> theme) : scene_(scene), theme_(theme) {}

    std::string write() {
        out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + pixel(scene_.width) +
               "\" height=\"" + pixel(scene_.height) + "\" viewBox=\"0 0 " + pixel(scene_.width) +
               " " + pixel(scene_.height) + "\" role=\"img\" font-family=\"" + kFont + "\">\n";
        out_ += "<title>" + escaped(scene_.title) + "</title>\n";
        if (!theme_) add_style();
        for (const Shape& shape : scene_.shapes)
            std::visit([this](const auto& one) { add(one); }, shape);
        if (in_clip_) out_ += "</g>\n";
        return out_ + "</svg>\n";
    }

private:
    /// The dark colours, for readers in the dark; attributes hold the light ones.
    void add_style() {
        out_ += "<style>@media (prefers-color-scheme:dark){";
        for (int i = 0; i < kRoleCount; ++i) {
            const std::string hex = hex_text(rgb_of(static_cast<Role>(i), Theme::kDark));
            const std::string number = std::to_string(i);
            out_ += ".f" + number + "{fill:" + hex + "}.s" + number + "{stroke:" + hex + "}";
        }
        out_ += "}</style>\n";
    }

    /// ` fill="#..." class="f3"`, and the opacity.
    [[nodiscard]] std::string painted(const Paint& paint, bool is_stroke) const {
        const std::string name = is_stroke ? "stroke" : "fill";
        const std::uint32_t rgb =
            paint.rgb ? *paint.rgb : rgb_of(paint.role, theme_.value_or(Theme::kLight));
        std::string text = " " + name + "=\"" + hex_text(rgb) + "\"";
        if (!paint.rgb && !theme_)
            text += std::string(" class=\"") + (is_stroke ? "s" : "f") +
                    std::to_string(static_cast<int>(paint.role)) + "\"";
        if (paint.opacity < 1) text += " " + name + "-opacity=\"" + pixel(paint.opacity) + "\"";
        return text;
    }

    /// Ends an element that may have a tool tip.
    void close(const char* name, const std::string& label) {
        if (label.empty())
            out_ += "/>\n";
        else
            out_ += "><title>" + escaped(label) + "</title></" + name + ">\n";
    }

    void add(const RectShape& rect) {
        out_ += "<rect x=\"" + pixel(rect.x) + "\" y=\"" + pixel(rect.y) + "\" width=\"" +
                pixel(rect.width) + "\" height=\"" + pixel(rect.height) + "\"";
        if (rect.radius > 0) out_ += " rx=\"" + pixel(rect.radius) + "\"";
        out_ += painted(rect.fill, false);
        close("rect", rect.label);
    }

    void add(const LineShape& line) {
        out_ += "<polyline points=\"";
        for (std::size_t i = 0; i < line.spots.size(); ++i)
            out_ += (i == 0 ? "" : " ") + pixel(line.spots[i].x) + "," + pixel(line.spots[i].y);
        out_ += "\" fill=\"none\" stroke-width=\"" + pixel(line.width) +
                "\" stroke-linejoin=\"round\"" + (line.dashed ? " stroke-dasharray=\"5 4\"" : "") +
                painted(line.stroke, true) + "/>\n";
    }

    void add(const AreaShape& area) {
        out_ += "<path fill-rule=\"evenodd\" d=\"";
        for (const std::vector<Spot>& loop : area.loops)
            for (std::size_t i = 0; i < loop.size(); ++i)
                out_ += (i == 0 ? "M" : "L") + pixel(loop[i].x) + " " + pixel(loop[i].y) +
                        (i + 1 == loop.size() ? "Z" : "");
        out_ += "\"" + painted(area.fill, false);
        close("path", area.label);
    }

    void add(const DotShape& dot) {
        out_ += "<circle cx=\"" + pixel(dot.centre.x) + "\" cy=\"" + pixel(dot.centre.y) +
                "\" r=\"" + pixel(dot.radius) + "\"";
        if (dot.hollow)
            out_ += " fill=\"none\" stroke-width=\"1.3\"" + painted(dot.paint, true);
        else
            out_ += painted(dot.paint, false);
        close("circle", dot.label);
    }

    void add(const TextShape& text) {
        const std::string x = pixel(text.at.x);
        const std::string y = pixel(text.at.y);
        out_ += "<text x=\"" + x + "\" y=\"" + y + "\" font-size=\"" + pixel(text.size) + "\"";
        if (text.anchor != Anchor::kStart)
            out_ += std::string(" text-anchor=\"") +
                    (text.anchor == Anchor::kMiddle ? "middle" : "end") + "\"";
        if (text.bold) out_ += " font-weight=\"600\"";
        if (text.upwards) out_ += " transform=\"rotate(-90 " + x + " " + y + ")\"";
        out_ += painted(text.paint, false) + ">" + escaped(text.text) + "</text>\n";
    }

    void add(const ClipShape& clip) {
        if (in_clip_) out_ += "</g>\n";
        in_clip_ = clip.width > 0;
        if (!in_clip_) return;
        const std::string name = "p" + std::to_string(++clips_);
        out_ += "<clipPath id=\"" + name + "\"><rect x=\"" + pixel(clip.x) + "\" y=\"" +
                pixel(clip.y) + "\" width=\"" + pixel(clip.width) + "\" height=\"" +
                pixel(clip.height) + "\"/></clipPath>\n<g clip-path=\"url(#" + name + ")\">\n";
    }

    const Scene& scene_;
    std::optional<Theme> theme_;
    std::string out_;
    bool in_clip_ = false;
    int clips_ = 0;
};

}  // namespace

std::string to_svg(const Scene& scene, std::optional<Theme> theme) {
    return Writer(scene, theme).write();
}

}  // namespace tune::chart
