// The file: for each entry u64 bytes of the key, u64 bytes of the content, both; at the end the
// xxh3_64 of all that, without which nothing of it is believed.

#include "loader/cache/opening_record.h"

#include <cstring>

#include "base/system/file.h"
#include "loader/format/hash.h"

namespace tune::loader {
namespace {

/// Larger reads are data rather than what describes it.
constexpr std::size_t kEntryBytesMax = std::size_t{8} << 20;
/// Of all entries.
constexpr std::size_t kOpeningBytesMax = std::size_t{64} << 20;

std::string key_of(const ObjectInfo& object, std::uint64_t offset, std::size_t bytes) {
    return object.path + '\0' + object.version + '\0' + std::to_string(object.bytes) + '\0' +
           std::to_string(offset) + '\0' + std::to_string(bytes);
}

void append_u64(std::string& text, std::uint64_t value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint64_t u64_at(std::string_view text, std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, text.data() + at, sizeof value);
    return value;
}

}  // namespace

OpeningRecord::OpeningRecord(std::filesystem::path file) : file_(std::move(file)) {
    load();
}

void OpeningRecord::load() {
    const Result<std::string> text = read_file(file_);
    if (!text || text->size() < sizeof(std::uint64_t)) return;
    std::string_view left(text->data(), text->size() - sizeof(std::uint64_t));
    if (u64_at(*text, left.size()) != xxh3_64(std::as_bytes(std::span(left)))) return;
    while (left.size() >= 2 * sizeof(std::uint64_t)) {
        const std::size_t key = u64_at(left, 0);
        const std::size_t content = u64_at(left, sizeof(std::uint64_t));
        left.remove_prefix(2 * sizeof(std::uint64_t));
        if (key > left.size() || content > left.size() - key) return;
        add(std::string(left.substr(0, key)), {std::string(left.substr(key, content))});
        left.remove_prefix(key + content);
    }
    has_changed_ = false;
}

/// What this run does not use may be of files that are gone: it makes room for what it does.
void OpeningRecord::add(std::string key, Entry entry) {
    const std::size_t bytes = entry.content.size();
    if (bytes > kEntryBytesMax) return;
    if (bytes_ + bytes > kOpeningBytesMax)
        std::erase_if(entries_, [this](const auto& known) {
            if (known.second.is_used) return false;
            bytes_ -= known.second.content.size();
            return true;
        });
    if (bytes_ + bytes > kOpeningBytesMax) return;
    if (!entries_.emplace(std::move(key), std::move(entry)).second) return;
    bytes_ += bytes;
    has_changed_ = true;
}

Result<void> OpeningRecord::read(const ObjectSource& source, const ObjectInfo& object,
                                 std::uint64_t offset, std::span<std::byte> bytes) {
    const std::string key = key_of(object, offset, bytes.size());
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = entries_.find(key);
            known != entries_.end() && known->second.content.size() == bytes.size()) {
            std::memcpy(bytes.data(), known->second.content.data(), bytes.size());
            known->second.is_used = true;
            return {};
        }
    }
    TUNE_TRY_VOID(source.read(object, offset, bytes));
    const std::lock_guard lock(mutex_);
    if (is_open_ && !object.version.empty())
        add(key, {{reinterpret_cast<const char*>(bytes.data()), bytes.size()}, true});
    return {};
}

void OpeningRecord::save() {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
    if (has_changed_) {
        std::string text;
        for (const auto& [key, entry] : entries_) {
            append_u64(text, key.size());
            append_u64(text, entry.content.size());
            text += key;
            text += entry.content;
        }
        append_u64(text, xxh3_64(std::as_bytes(std::span(text))));
        static_cast<void>(write_file_atomic(file_, text));
    }
    entries_.clear();
    bytes_ = 0;
}

}  // namespace tune::loader
