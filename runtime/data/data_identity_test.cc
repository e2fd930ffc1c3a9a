#include "runtime/data/data_identity.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

std::string Bytes(int64_t count, char first = 0) {
  std::string bytes(static_cast<size_t>(count), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(first + i % 251);
  return bytes;
}

class DataIdentityTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(testing::TempDir() + name, std::ios::binary) << bytes;
  }
  DataIdentityTest() {
    job_.mutable_data()->set_format(proto::BYTES);
    job_.mutable_data()->add_train("one");
    job_.mutable_data()->add_train("two");
    Write("one", Bytes(1000));
    Write("two", Bytes(3 << 20));
  }
  DataIdentity Identify() {
    const absl::StatusOr<DataIdentity> identity = IdentifyData(job_, testing::TempDir());
    EXPECT_TRUE(identity.ok()) << identity.status();
    return identity.ok() ? *identity : DataIdentity();
  }
  DataComparison Compare(const DataIdentity& then) {
    const absl::StatusOr<DataChanges> changes = CompareData(then, job_, testing::TempDir());
    EXPECT_TRUE(changes.ok()) << changes.status();
    return changes.ok() ? changes->train : DataComparison();
  }

  proto::Job job_;
};

TEST_F(DataIdentityTest, SaysWhatTheFilesAre) {
  const DataIdentity identity = Identify();
  ASSERT_EQ(identity.train.size(), 2u);
  EXPECT_EQ(identity.train[0].file, "one");
  EXPECT_EQ(identity.train[0].tokens, 1000);
  EXPECT_EQ(identity.train[1].bytes, 3 << 20);
  EXPECT_EQ(identity.train[1].blocks, 64);
  EXPECT_TRUE(identity.validation.empty());
  EXPECT_EQ(Compare(identity).change, DataChange::kSame);
  EXPECT_EQ(ChecksumOf(identity), ChecksumOf(Identify()));
}

TEST_F(DataIdentityTest, PathsAndHeadersDoNotCount) {
  const DataIdentity identity = Identify();
  Write("three", Bytes(1000));
  job_.mutable_data()->set_train(0, "three");
  EXPECT_EQ(Compare(identity).change, DataChange::kSame);
  EXPECT_EQ(ChecksumOf(identity), ChecksumOf(Identify()));
  EXPECT_EQ(Compare(DataIdentity()).change, DataChange::kAppended);
}

TEST_F(DataIdentityTest, OtherContentsAreSeenAtBothEndsAndInBlocksBetween) {
  const DataIdentity identity = Identify();
  const int64_t step = ((3 << 20) - (16 << 10)) / 63;  // from block to block
  for (const int64_t at : {int64_t{0}, step, 20 * step + 5, int64_t{(3 << 20) - 1}}) {
    std::string bytes = Bytes(3 << 20);
    bytes[static_cast<size_t>(at)] ^= 1;
    Write("two", bytes);
    const DataComparison comparison = Compare(identity);
    EXPECT_EQ(comparison.change, DataChange::kReplaced) << at;
    EXPECT_THAT(comparison.then, HasSubstr("two with 3145728 tokens (xxh3 "));
    EXPECT_THAT(comparison.now, HasSubstr("two with 3145728 tokens (xxh3 "));
    EXPECT_NE(comparison.then, comparison.now);
    EXPECT_NE(ChecksumOf(identity), ChecksumOf(Identify()));
  }
  // The limit of what is known: between blocks.
  std::string bytes = Bytes(3 << 20);
  bytes[static_cast<size_t>(step - 1)] ^= 1;
  Write("two", bytes);
  EXPECT_EQ(Compare(identity).change, DataChange::kSame);
  // A file of up to 1 MiB is read as a whole.
  bytes = Bytes(1 << 20);
  Write("two", bytes);
  const DataIdentity whole = Identify();
  for (const size_t at : {size_t{1000}, size_t{17000}, size_t{999999}}) {
    std::string other = bytes;
    other[at] ^= 1;
    Write("two", other);
    EXPECT_EQ(Compare(whole).change, DataChange::kReplaced) << at;
  }
}

TEST_F(DataIdentityTest, OnlyTheEndMayGrow) {
  const DataIdentity identity = Identify();
  Write("two", Bytes((3 << 20) + 7));
  DataComparison comparison = Compare(identity);
  EXPECT_EQ(comparison.change, DataChange::kAppended);
  EXPECT_THAT(comparison.now, HasSubstr("two with 3145735 tokens"));
  Write("two", Bytes(3 << 20));
  job_.mutable_data()->add_train("one");
  comparison = Compare(identity);
  EXPECT_EQ(comparison.change, DataChange::kAppended);
  EXPECT_EQ(comparison.then + ", " + comparison.now, "2 files, the same and 1 more");
  Write("two", Bytes((3 << 20) + 7, 1));
  EXPECT_EQ(Compare(identity).change, DataChange::kReplaced);
  Write("two", Bytes(3 << 20));
  Write("one", Bytes(1001));  // everything behind it moves
  EXPECT_EQ(Compare(identity).change, DataChange::kReplaced);
  Write("one", Bytes(999));
  EXPECT_THAT(Compare(identity).now, HasSubstr("one with 999 tokens"));
  Write("one", Bytes(1000));
  job_.mutable_data()->mutable_train()->DeleteSubrange(1, 2);
  EXPECT_EQ(Compare(identity).change, DataChange::kReplaced);
}

TEST_F(DataIdentityTest, ManyFilesShareTheBlocks) {
  job_.mutable_data()->clear_train();
  for (int i = 0; i < 3000; ++i) job_.mutable_data()->add_train(i % 2 == 0 ? "one" : "two");
  const DataIdentity identity = Identify();
  EXPECT_EQ(identity.train[1].blocks, 2);
  EXPECT_EQ(Compare(identity).change, DataChange::kSame);
}

TEST_F(DataIdentityTest, AFileThatIsNotThereIsAnError) {
  const DataIdentity identity = Identify();
  job_.mutable_data()->set_train(0, "nowhere");
  EXPECT_EQ(CompareData(identity, job_, testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace planc
