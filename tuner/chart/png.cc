// A scene as PNG, drawn by cairo, whose functions are looked up when the first picture is made.
// They are declared by cairo's own header, so a call that does not fit the library does not
// compile, and each is found under its name or none is used. Without the library the error says
// what to install; SVG needs nothing.
//
// Sizes are bounded before memory is taken. Cairo keeps an error in its context and ignores what
// follows, so one question at the end answers for all calls.

#include "tuner/chart/png.h"

#include <cairo/cairo.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>

namespace tune::chart {
namespace {

constexpr double kPixelsMax = 1e8;  // 400 MB in memory

/// The functions of the library that are used here, by their own declarations.
struct Cairo {
// clang-format off
#define TUNE_CAIRO_FUNCTIONS(CALL) \
    CALL(image_surface_create) CALL(surface_destroy) CALL(surface_write_to_png_stream) \
    CALL(create) CALL(destroy) CALL(status) CALL(status_to_string) CALL(scale) CALL(save) \
    CALL(restore) CALL(rectangle) CALL(clip) CALL(new_path) CALL(arc) CALL(close_path) \
    CALL(fill) CALL(stroke) CALL(move_to) CALL(line_to) CALL(set_line_width) \
    CALL(set_line_join) CALL(set_dash) CALL(set_source_rgba) CALL(select_font_face) \
    CALL(set_font_size) CALL(text_extents) CALL(show_text) CALL(rotate) CALL(set_fill_rule)
// clang-format on
#define TUNE_DECLARE(name) decltype(&cairo_##name) name = nullptr;
    TUNE_CAIRO_FUNCTIONS(TUNE_DECLARE)
#undef TUNE_DECLARE
    bool is_loaded = false;

    Cairo() {
        void* const library = ::dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return;
        is_loaded = true;
#define TUNE_LOOK_UP(name)                                                              \
    name = reinterpret_cast<decltype(&cairo_##name)>(::dlsym(library, "cairo_" #name)); \
    is_loaded = is_loaded && name != nullptr;
        TUNE_CAIRO_FUNCTIONS(TUNE_LOOK_UP)
#undef TUNE_LOOK_UP
    }
};
#undef TUNE_CAIRO_FUNCTIONS

const Cairo& cairo() {
    static const Cairo library;
    return library;
}

class Painter {
public:
    Painter(cairo_t* context, Theme theme) : api_(cairo()), context_(context), theme_(theme) {}

    void draw(const Scene& scene) {
        for (const Shape& shape : scene.shapes)
            std::visit([this](const auto& one) { add(one); }, shape);
        end_clip();
    }

private:
    void use(const Paint& paint) {
        const std::uint32_t rgb = paint.rgb ? *paint.rgb : rgb_of(paint.role, theme_);
        api_.set_source_rgba(context_, ((rgb >> 16) & 0xFF) / 255.0, ((rgb >> 8) & 0xFF) / 255.0,
                             (rgb & 0xFF) / 255.0, paint.opacity);
    }

    void add(const RectShape& rect) {
        use(rect.fill);
        api_.new_path(context_);
        const double radius = std::min({rect.radius, rect.width / 2, rect.height / 2});
        if (radius <= 0) {
            api_.rectangle(context_, rect.x, rect.y, rect.width, rect.height);
        } else {
            const double right = rect.x + rect.width - radius;
            const double bottom = rect.y + rect.height - radius;
            const double quarter = M_PI / 2;
            api_.arc(context_, right, rect.y + radius, radius, -quarter, 0);
            api_.arc(context_, right, bottom, radius, 0, quarter);
            api_.arc(context_, rect.x + radius, bottom, radius, quarter, 2 * quarter);
            api_.arc(context_, rect.x + radius, rect.y + radius, radius, 2 * quarter, 3 * quarter);
            api_.close_path(context_);
        }
        api_.fill(context_);
    }

    void add(const LineShape& line) {
        use(line.stroke);
        api_.new_path(context_);
        for (std::size_t i = 0; i < line.spots.size(); ++i)
            (i == 0 ? api_.move_to : api_.line_to)(context_, line.spots[i].x, line.spots[i].y);
        api_.set_line_width(context_, line.width);
        api_.set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
        const double dashes[] = {5, 4};
        api_.set_dash(context_, dashes, line.dashed ? 2 : 0, 0);
        api_.stroke(context_);
    }

    void add(const AreaShape& area) {
        use(area.fill);
        api_.new_path(context_);
        for (const std::vector<Spot>& loop : area.loops) {
            for (std::size_t i = 0; i < loop.size(); ++i)
                (i == 0 ? api_.move_to : api_.line_to)(context_, loop[i].x, loop[i].y);
            api_.close_path(context_);
        }
        api_.set_fill_rule(context_, CAIRO_FILL_RULE_EVEN_ODD);
        api_.fill(context_);
        api_.set_fill_rule(context_, CAIRO_FILL_RULE_WINDING);
    }

    void add(const DotShape& dot) {
        use(dot.paint);
        api_.new_path(context_);
        api_.arc(context_, dot.centre.x, dot.centre.y, dot.radius, 0, 2 * M_PI);
        if (!dot.hollow) return api_.fill(context_);
        api_.set_line_width(context_, 1.3);
        api_.set_dash(context_, nullptr, 0, 0);
        api_.stroke(context_);
    }

    void add(const TextShape& text) {
        use(text.paint);
        api_.select_font_face(context_, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                              text.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
        api_.set_font_size(context_, text.size * 0.94);
        cairo_text_extents_t extents{};
        api_.text_extents(context_, text.text.c_str(), &extents);
        const double shift = text.anchor == Anchor::kStart    ? 0
                             : text.anchor == Anchor::kMiddle ? -extents.x_advance / 2
                                                              : -extents.x_advance;
        api_.save(context_);
        api_.move_to(context_, text.at.x + (text.upwards ? 0 : shift),
                     text.at.y - (text.upwards ? shift : 0));
        if (text.upwards) api_.rotate(context_, -M_PI / 2);
        api_.show_text(context_, text.text.c_str());
        api_.restore(context_);
    }

    void add(const ClipShape& clip) {
        end_clip();
        if (clip.width <= 0) return;
        api_.save(context_);
        in_clip_ = true;
        api_.new_path(context_);
        api_.rectangle(context_, clip.x, clip.y, clip.width, clip.height);
        api_.clip(context_);
    }

    void end_clip() {
        if (in_clip_) api_.restore(context_);
        in_clip_ = false;
    }

    const Cairo& api_;
    cairo_t* context_;
    Theme theme_;
    bool in_clip_ = false;
};

cairo_status_t append(void* target, const unsigned char* bytes, unsigned int count) {
    static_cast<std::string*>(target)->append(reinterpret_cast<const char*>(bytes), count);
    return CAIRO_STATUS_SUCCESS;
}

}  // namespace

Result<std::string> to_png(const Scene& scene, Theme theme, double scale) {
    const double sharp = std::clamp(scale, 0.5, 4.0);
    const double width = std::ceil(scene.width * sharp);
    const double height = std::ceil(scene.height * sharp);
    if (width * height > kPixelsMax || width > 32'000 || height > 32'000)
        return Error{Code::kInvalidParameterValue,
                     "a picture of this size has too many pixels; take a smaller one, or SVG"};
    const Cairo& api = cairo();
    if (!api.is_loaded)
        return Error{Code::kNotImplemented,
                     "PNG needs the library cairo (Debian: apt install libcairo2); SVG needs "
                     "nothing"};
    cairo_surface_t* const surface = api.image_surface_create(
        CAIRO_FORMAT_RGB24, static_cast<int>(width), static_cast<int>(height));
    cairo_t* const context = api.create(surface);
    api.scale(context, sharp, sharp);
    Painter(context, theme).draw(scene);
    std::string bytes;
    cairo_status_t status = api.status(context);
    if (status == CAIRO_STATUS_SUCCESS)
        status = api.surface_write_to_png_stream(surface, append, &bytes);
    api.destroy(context);
    api.surface_destroy(surface);
    if (status != CAIRO_STATUS_SUCCESS)
        return Error{Code::kInternalError,
                     std::string("cannot draw the picture: ") + api.status_to_string(status)};
    return bytes;
}

}  // namespace tune::chart
