#include "schemas/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "schemas/status.h"

namespace planc {
namespace {

TEST(FaultTest, ContextKeepsTheCause) {
  const absl::Status status = WithContext(
      WithContext(WithFault(absl::DataLossError("torn"), Fault::kEnvironment), "file"), "rank 3");
  EXPECT_EQ(status.message(), "rank 3: file: torn");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(FaultOf(status), Fault::kEnvironment);
  EXPECT_EQ(FaultOf(absl::DataLossError("torn")), std::nullopt);
  EXPECT_TRUE(WithFault(absl::OkStatus(), Fault::kTraining).ok());
}

TEST(FaultTest, AnotherRankGetsTheWholeStatus) {
  const absl::Status bare = absl::UnavailableError("rank 2 is gone: 3 times");
  EXPECT_EQ(DecodeStatus(EncodeStatus(bare)), bare);
  const absl::Status status = SystemError("runs/x/metrics.jsonl: cannot write", ENOSPC);
  EXPECT_EQ(DecodeStatus(EncodeStatus(status)), status);
  EXPECT_EQ(FaultOf(DecodeStatus(EncodeStatus(status))), Fault::kEnvironment);
  EXPECT_TRUE(DecodeStatus(EncodeStatus(absl::OkStatus())).ok());
  EXPECT_EQ(DecodeStatus(EncodeStatus(absl::AbortedError(""))), absl::AbortedError(""));
}

TEST(FaultTest, ErrorsAreJoined) {
  const absl::Status closed =
      WithFault(absl::InvalidArgumentError("a: closed"), Fault::kEnvironment);
  const absl::Status joined = JoinedErrors({closed, closed});
  EXPECT_EQ(joined.message(), "a: closed\na: closed");
  EXPECT_EQ(FaultOf(joined), Fault::kEnvironment);
  EXPECT_EQ(FaultOf(JoinedErrors({closed, absl::InvalidArgumentError("b: odd")})), std::nullopt);
  EXPECT_EQ(FaultOf(JoinedErrors({absl::InvalidArgumentError("b: odd"), closed})), std::nullopt);
  EXPECT_TRUE(JoinedErrors({}).ok());
}

TEST(FaultTest, TheReasonOfTheSystemDecides) {
  for (const int error : {EACCES, EROFS, ENOSPC, EDQUOT, EMFILE, ENFILE, ENOTDIR, EISDIR, ENOENT,
                          EADDRINUSE, EAGAIN, EFBIG, EIO, ELOOP, ENAMETOOLONG, EPERM}) {
    EXPECT_EQ(FaultOfErrno(error), Fault::kEnvironment) << error;
  }
  EXPECT_EQ(FaultOfErrno(ENOMEM), Fault::kDoesNotFit);
  EXPECT_EQ(FaultOfErrno(ECONNRESET), Fault::kPeerLost);
  EXPECT_EQ(SystemError("a/b: cannot create", ENOSPC).message(),
            "a/b: cannot create: No space left on device");
}

}  // namespace
}  // namespace planc
