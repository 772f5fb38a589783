#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace tune {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
    switch (level) {
        case LogLevel::kDebug: return spdlog::level::debug;
        case LogLevel::kInfo: return spdlog::level::info;
        case LogLevel::kWarning: return spdlog::level::warn;
        case LogLevel::kError: return spdlog::level::err;
        case LogLevel::kOff: return spdlog::level::off;
    }
    return spdlog::level::info;
}

spdlog::logger& logger() {
    static const std::shared_ptr<spdlog::logger> instance = [] {
        auto made = std::make_shared<spdlog::logger>(
            "tune", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        made->set_pattern("%H:%M:%S.%e %l: %v");
        return made;
    }();
    return *instance;
}

}  // namespace

void set_log_level(LogLevel level) {
    logger().set_level(level_of(level));
}

void log(LogLevel level, std::string_view text) {
    logger().log(level_of(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace tune
