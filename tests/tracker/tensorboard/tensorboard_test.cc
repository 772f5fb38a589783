#include <fcntl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/id.h"
#include "tracker/tensorboard/event.h"
#include "tracker/tensorboard/event_file.h"
#include "tracker/tensorboard/hparams.h"
#include "tracker/tensorboard/wire.h"

namespace tune::tensorboard {
namespace {

namespace fs = std::filesystem;
using Next = RecordReader::Next;

class EventFileTest : public testing::Test {
protected:
    ~EventFileTest() override { fs::remove_all(folder_); }

    RecordReader reader(const std::string& content) {
        fs::create_directories(folder_);
        std::ofstream(folder_ / "file", std::ios::binary) << content;
        return RecordReader(UniqueFd(open((folder_ / "file").c_str(), O_RDONLY)));
    }

    const fs::path folder_ = fs::temp_directory_path() / ("tensorboard_test." + random_hex(6));
};

TEST(Checksum, IsThatOfTfRecord) {
    // RFC 3720, B.4: 32 bytes of zeros have the CRC 0x8a9136aa, of ones 0x62a8ab43.
    const auto masked = [](std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; };
    EXPECT_EQ(masked_crc32c(std::string(32, '\0')), masked(0x8a9136aa));
    EXPECT_EQ(masked_crc32c(std::string(32, '\xff')), masked(0x62a8ab43));
    EXPECT_EQ(masked_crc32c("123456789"), masked(0xe3069283));
}

TEST(Event, ScalarsReadBackExactly) {
    const double infinity = std::numeric_limits<double>::infinity();
    const Scalar scalars[] = {{"loss", 0.1}, {"big", -infinity}, {"none", std::nan("")}};
    const std::string bytes = scalar_event(1.25, -7, scalars);
    const auto event = parse_event(bytes);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->wall_time_s, 1.25);
    EXPECT_EQ(event->step, -7);
    ASSERT_EQ(event->values.size(), 3);
    EXPECT_EQ(event->values[0].tag, "loss");
    EXPECT_TRUE(event->values[0].is_simple);
    EXPECT_EQ(event->values[0].number, 0.1);
    EXPECT_EQ(event->values[1].number, -infinity);
    EXPECT_TRUE(std::isnan(*event->values[2].number));
}

TEST(Event, TensorsOfOneNumberOfEachType) {
    const auto number_of = [](const Message& tensor) {
        const std::string value = Message().bytes(1, "t").bytes(8, tensor.text()).text();
        const std::string bytes = Message().bytes(5, Message().bytes(1, value).text()).text();
        const auto event = parse_event(bytes);
        return event && !event->values.empty() ? event->values[0].number : std::nullopt;
    };
    const auto with = [](std::int64_t dtype) { return Message().integer(1, dtype); };
    EXPECT_EQ(number_of(with(1).bytes(4, std::string("\0\0\xc0\x3f", 4))), 1.5);
    EXPECT_EQ(number_of(with(1).bytes(5, std::string("\0\0\xc0\x3f", 4))), 1.5);
    EXPECT_EQ(number_of(with(3).integer(7, -3)), -3.0);
    EXPECT_EQ(number_of(with(9).bytes(10, std::string("\x96\x01", 2))), 150.0);
    EXPECT_EQ(number_of(with(19).bytes(4, std::string("\0\x3e", 2))), 1.5);
    EXPECT_EQ(number_of(with(14).bytes(4, std::string("\xc0\x3f", 2))), 1.5);
    EXPECT_EQ(number_of(with(3).integer(7, 1).integer(7, 2)), std::nullopt) << "two numbers";
    EXPECT_EQ(number_of(with(1).bytes(4, "abc")), std::nullopt);
    EXPECT_EQ(number_of(with(7).bytes(8, "text")), std::nullopt);
}

TEST(Event, NothingThatIsCutIsTaken) {
    const Scalar scalars[] = {{"loss", 0.1}};
    const std::string whole = scalar_event(1.25, 3, scalars);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const std::string cut = whole.substr(0, size);
        const auto event = parse_event(cut);
        EXPECT_TRUE(!event || event->values.empty()) << size;
    }
}

TEST(Hparams, ReadBack) {
    const std::vector<std::pair<std::string, std::string>> params = {
        {"lr", "0.1"}, {"name", "a b"}, {"float", "1.0"}, {"big", "1e400"}, {"n", "-7"}};
    const auto start = parse_session(session_start(params, 5));
    ASSERT_TRUE(start);
    EXPECT_EQ(start->params, params);
    const auto end = parse_session(session_end(SessionStatus::kFailure, 9.5));
    ASSERT_TRUE(end);
    EXPECT_EQ(end->status, SessionStatus::kFailure);
    EXPECT_EQ(end->end_time_s, 9.5);
    EXPECT_FALSE(parse_session("\x1a\x7f"));
}

TEST_F(EventFileTest, WritesWhatIsRead) {
    auto file = EventFile::create(folder_ / "deep" / "run", 1'700'000'000.0);
    ASSERT_TRUE(file);
    const Scalar scalars[] = {{"x", 2.0}};
    ASSERT_TRUE(file->write(scalar_event(1, 1, scalars)));
    RecordReader records(UniqueFd(open(file->path().c_str(), O_RDONLY)));
    std::string record;
    ASSERT_EQ(records.next(record).value(), Next::kRecord);
    EXPECT_EQ(parse_event(record)->file_version, "brain.Event:2");
    ASSERT_EQ(records.next(record).value(), Next::kRecord);
    EXPECT_EQ(parse_event(record)->values[0].number, 2.0);
    EXPECT_EQ(records.next(record).value(), Next::kEnd);
    const auto second = EventFile::create(folder_ / "deep" / "run", 1'700'000'000.0);
    ASSERT_TRUE(second);
    EXPECT_NE(second->path(), file->path());
}

TEST_F(EventFileTest, SaysWhatEndsAFile) {
    const std::string good = framed("record");
    std::string record;
    for (std::size_t size = 1; size < good.size(); ++size) {
        RecordReader cut = reader(good + good.substr(0, size));
        EXPECT_EQ(cut.next(record).value(), Next::kRecord);
        EXPECT_EQ(cut.next(record).value(), Next::kTruncated) << size;
        EXPECT_EQ(cut.offset(), good.size());
    }
    for (std::size_t at = 0; at < good.size(); ++at) {
        std::string changed = good;
        changed[at] = static_cast<char>(changed[at] ^ 4);
        EXPECT_EQ(reader(changed).next(record).value(), Next::kDamaged) << at;
    }
    // A length that fits its checksum and nothing else.
    std::string length(8, '\x7f');
    const std::uint32_t crc = masked_crc32c(length);
    length.append(reinterpret_cast<const char*>(&crc), sizeof crc);
    EXPECT_EQ(reader(length + good).next(record).value(), Next::kTruncated);
}

}  // namespace
}  // namespace tune::tensorboard
