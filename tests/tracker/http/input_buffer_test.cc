#include "tracker/http/session/input_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tune::tracker {
namespace {

/// Reads `text` as a socket would, as much as fits; how much that was.
std::size_t read(InputBuffer& buffer, std::string_view text) {
    const std::span<char> room = buffer.room();
    const std::size_t count = std::min(room.size(), text.size());
    std::copy_n(text.begin(), count, room.begin());
    buffer.add(count);
    return count;
}

TEST(InputBuffer, GivesBackWhatWasReadInOrder) {
    InputBuffer buffer;
    read(buffer, "first second");
    EXPECT_EQ(buffer.pending(), "first second");
    buffer.consume(6);
    read(buffer, " third");
    EXPECT_EQ(buffer.pending(), "second third");
    EXPECT_FALSE(buffer.was_filled());
}

TEST(InputBuffer, KeepsWhatIsPendingWhenItIsFull) {
    InputBuffer buffer;
    const std::string text(kReadBytes, 'x');
    EXPECT_EQ(read(buffer, text), kReadBytes);
    EXPECT_TRUE(buffer.was_filled());
    buffer.consume(kReadBytes - 3);
    EXPECT_EQ(read(buffer, "abc"), 3u);  // behind the rest, which moved to the front
    EXPECT_EQ(buffer.pending(), "xxxabc");
    EXPECT_EQ(buffer.size(), kReadBytes);
    EXPECT_FALSE(buffer.was_filled());
}

TEST(InputBuffer, GrowsWhereNothingIsConsumed) {
    InputBuffer buffer;
    const std::string text(kReadBytes, 'x');
    read(buffer, text);
    read(buffer, "y");
    EXPECT_EQ(buffer.size(), 2 * kReadBytes);
    EXPECT_EQ(buffer.pending(), text + "y");
}

TEST(InputBuffer, ShrinksToItsFirstSizeOrWhatIsPending) {
    InputBuffer buffer;
    buffer.grow(kTransferBytes);
    const std::string text(2 * kReadBytes, 'x');
    read(buffer, text);
    buffer.shrink();
    EXPECT_EQ(buffer.size(), 2 * kReadBytes);
    EXPECT_EQ(buffer.pending(), text);
    buffer.consume(text.size() - 1);
    buffer.shrink();
    EXPECT_EQ(buffer.size(), kReadBytes);
    EXPECT_EQ(buffer.pending(), "x");
}

}  // namespace
}  // namespace tune::tracker
