#include "runtime/metrics/event_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// A reader of TFRecords and Event messages that shares nothing with the writer; its CRC goes bit by
// bit.
uint32_t SlowCrc(const std::string& bytes) {
  uint32_t crc = 0xffffffffu;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
  }
  return crc ^ 0xffffffffu;
}

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}

  bool AtEnd() const { return at_ >= bytes_.size(); }
  template <typename T>
  T Fixed() {
    T value;
    std::memcpy(&value, Take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const unsigned char byte = static_cast<unsigned char>(Take(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  std::string Take(size_t count) {
    EXPECT_LE(at_ + count, bytes_.size());
    const std::string taken = bytes_.substr(at_, count);
    at_ += count;
    return taken + std::string(count - taken.size(), '\0');
  }
  std::string Delimited() { return Take(Varint()); }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

uint32_t Unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

std::vector<std::string> ReadRecords(const std::string& bytes) {
  Reader reader(bytes);
  std::vector<std::string> records;
  while (!reader.AtEnd() && !testing::Test::HasFailure()) {
    const std::string length = reader.Take(8);
    EXPECT_EQ(Unmask(reader.Fixed<uint32_t>()), SlowCrc(length));
    uint64_t size = 0;
    std::memcpy(&size, length.data(), 8);
    records.push_back(reader.Take(size));
    EXPECT_EQ(Unmask(reader.Fixed<uint32_t>()), SlowCrc(records.back()));
  }
  return records;
}

struct Event {
  double wall_time = 0;
  uint64_t step = 0;
  std::string file_version;
  uint64_t session_status = 0;
  std::map<std::string, float> scalars;
};

Event ReadEvent(const std::string& record) {
  Event event;
  Reader reader(record);
  while (!reader.AtEnd()) {
    switch (reader.Varint()) {
      case (1 << 3) | 1:
        event.wall_time = reader.Fixed<double>();
        break;
      case (2 << 3) | 0:
        event.step = reader.Varint();
        break;
      case (3 << 3) | 2:
        event.file_version = reader.Delimited();
        break;
      case (7 << 3) | 2: {
        Reader session(reader.Delimited());
        EXPECT_EQ(session.Varint(), (1u << 3) | 0u);
        event.session_status = session.Varint();
        EXPECT_TRUE(session.AtEnd());
        break;
      }
      case (5 << 3) | 2: {
        Reader summary(reader.Delimited());
        while (!summary.AtEnd()) {
          EXPECT_EQ(summary.Varint(), (1u << 3) | 2u);
          Reader value(summary.Delimited());
          EXPECT_EQ(value.Varint(), (1u << 3) | 2u);
          const std::string tag = value.Delimited();
          EXPECT_EQ(value.Varint(), (2u << 3) | 5u);
          event.scalars[tag] = value.Fixed<float>();
          EXPECT_TRUE(value.AtEnd());
        }
        break;
      }
      default:
        ADD_FAILURE() << "unknown field";
        return event;
    }
  }
  return event;
}

// An empty folder for the test that runs.
std::string NewFolder() {
  const std::string folder = testing::TempDir() + "event_file_" +
                             testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(EventFileTest, Crc32cVectors) {
  // RFC 3720, section B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(EventFileTest, AnIndependentReaderUnderstandsIt) {
  const std::string directory = NewFolder();
  auto file = EventFile::Create(directory, 1700000000.5, 41);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->WriteScalars(1, 1700000001.25, {{"loss", 5.5}, {"lr", 1e-3}}).ok());
  ASSERT_TRUE((*file)->WriteScalars(300000, 1700000002.0, {{"loss", 4.25}}).ok());
  std::ostringstream bytes;
  bytes << std::ifstream(directory + "/events.out.tfevents.1700000000.planc", std::ios::binary)
               .rdbuf();
  const std::vector<std::string> records = ReadRecords(bytes.str());
  ASSERT_EQ(records.size(), 4u);
  const Event head = ReadEvent(records[0]);
  EXPECT_EQ(head.file_version, "brain.Event:2");
  EXPECT_EQ(head.wall_time, 1700000000.5);
  EXPECT_EQ(head.session_status, 0u);
  const Event start = ReadEvent(records[1]);
  EXPECT_EQ(start.session_status, 1u) << "START";
  EXPECT_EQ(start.step, 41u) << "of the first scalars to come";
  const Event first = ReadEvent(records[2]);
  EXPECT_EQ(first.step, 1u);
  EXPECT_EQ(first.wall_time, 1700000001.25);
  EXPECT_EQ(first.scalars, (std::map<std::string, float>{{"loss", 5.5f}, {"lr", 1e-3f}}));
  const Event second = ReadEvent(records[3]);
  EXPECT_EQ(second.step, 300000u);
  EXPECT_EQ(second.scalars, (std::map<std::string, float>{{"loss", 4.25f}}));
}

// Files of one second, and after a clock was set back, each have their own name, in order.
TEST(EventFileTest, ARestartNeverWritesOverAnEarlierFile) {
  const std::string folder = NewFolder();
  const std::string other = "events.out.tfevents.1900000000.host.1.0";
  std::ofstream(folder + "/" + other) << "of another program";
  for (const double now : {1700000000.1, 1700000000.7, 1600000000.0}) {
    auto file = EventFile::Create(folder, now, 1);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->WriteScalars(1, now, {{"loss", 1.0}}).ok());
  }
  EXPECT_EQ(NamesIn(folder),
            (std::vector<std::string>{"events.out.tfevents.1700000000.planc",
                                      "events.out.tfevents.1700000001.planc",
                                      "events.out.tfevents.1700000002.planc", other}));
  EXPECT_TRUE(IsEventFileName("events.out.tfevents.1700000000.planc"));
  EXPECT_FALSE(IsEventFileName(other));
  EXPECT_FALSE(IsEventFileName("events.out.tfevents..planc"));
}

}  // namespace
}  // namespace planc
