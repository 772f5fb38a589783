// A file of events from anywhere. Property: an end, an error or records within the file; an event's
// values lie within its record.

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "tests/fuzz/fuzz.h"
#include "tracker/tensorboard/event.h"
#include "tracker/tensorboard/event_file.h"
#include "tracker/tensorboard/hparams.h"

namespace {

using namespace tune::tensorboard;

void check_event(std::string_view record) {
    const auto inside = [&](std::string_view part) {
        return part.empty() || (part.data() >= record.data() &&
                                part.data() + part.size() <= record.data() + record.size());
    };
    static_cast<void>(parse_session(record));
    const auto event = parse_event(record);
    if (!event) return;
    for (const Value& value : event->values) {
        FUZZ_CHECK(inside(value.tag) && inside(value.plugin) && inside(value.plugin_content));
        static_cast<void>(parse_session(value.plugin_content));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    // As one record, since no fuzzer finds checksums; and as a file.
    check_event(bytes);
    tune::UniqueFd file(memfd_create("events", MFD_CLOEXEC));
    const std::string content = framed(bytes) + bytes;
    FUZZ_CHECK(write(file.get(), content.data(), content.size()) ==
               static_cast<ssize_t>(content.size()));
    RecordReader reader(std::move(file));
    std::string record;
    for (int i = 0;; ++i) {
        const auto next = reader.next(record);
        FUZZ_CHECK(next.has_value());
        FUZZ_CHECK(i > 0 || record == bytes);
        FUZZ_CHECK(reader.offset() <= content.size());
        if (*next != RecordReader::Next::kRecord && *next != RecordReader::Next::kTooLong) break;
        check_event(record);
    }
    return 0;
}
