// An untrusted archive. Property: an error, or members inside of it with names that stay inside.

#include <algorithm>
#include <cstring>

#include "loader/format/npy.h"
#include "loader/format/tar.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    using namespace tune::loader;
    const ReadArchive read = [&](std::uint64_t offset,
                                 std::span<std::byte> bytes) -> tune::Result<void> {
        FUZZ_CHECK(offset <= size && bytes.size() <= size - offset);
        if (!bytes.empty()) std::memcpy(bytes.data(), data + offset, bytes.size());
        return {};
    };
    if (const auto members = list_tar(size, read))
        for (const TarMember& member : *members) {
            FUZZ_CHECK(member.offset <= size && member.bytes <= size - member.offset);
            FUZZ_CHECK(!member.name.empty() && member.name.front() != '/');
        }
    const auto bytes = std::as_bytes(std::span(data, size));
    if (const auto array = parse_npy(bytes)) FUZZ_CHECK(array->bytes.size() <= size);
    static_cast<void>(npz_member(bytes, "arr"));
    return 0;
}
