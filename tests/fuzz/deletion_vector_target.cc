// An untrusted deletion vector: its Roaring bitmap, and the same bytes as text of a descriptor.
// Property: an error, or ascending rows of the stated number.

#include "loader/delta/deletion_vector.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    using namespace tune::loader;
    constexpr std::int64_t kValuesMax = 100'000;
    const std::span<const std::uint8_t> bytes(data, size);
    if (const auto rows = parse_roaring(std::as_bytes(bytes), kValuesMax)) {
        FUZZ_CHECK(rows->size() <= static_cast<std::size_t>(kValuesMax));
        for (std::size_t i = 1; i < rows->size(); ++i) FUZZ_CHECK((*rows)[i - 1] < (*rows)[i]);
    }
    const std::string text(text_of(data, size));
    if (const auto decoded = decode_z85(text)) FUZZ_CHECK(decoded->size() == text.size() / 5 * 4);
    DeletionVector vector{'i', text, {}, static_cast<std::int64_t>(size / 5 * 4), 6};
    if (const auto rows = rows_inline(vector)) FUZZ_CHECK(rows->size() == 6);
    vector.storage = 'u';
    if (const auto file = deletion_file(vector))
        FUZZ_CHECK(file->find("..") == std::string::npos && file->front() != '/');
    vector.bytes = size < 8 ? 0 : static_cast<std::int64_t>(size - 8);
    static_cast<void>(rows_of_block(vector, std::as_bytes(bytes)));
    return 0;
}
