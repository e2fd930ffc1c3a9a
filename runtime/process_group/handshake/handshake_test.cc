// Attacks on the store's port by somebody who does not know the job's secret.
#include "runtime/process_group/handshake/handshake.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/process_group/handshake/authenticated_listener.h"
#include "runtime/process_group/handshake/job_secret.h"
#include "runtime/process_group/socket.h"
#include "runtime/process_group/store_client.h"
#include "runtime/process_group/store_protocol.h"
#include "runtime/process_group/store_server.h"
#include "runtime/process_group/test_store.h"
#include "schemas/fault.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

constexpr char kHost[] = "127.0.0.1";
constexpr absl::Duration kLong = absl::Seconds(60);
constexpr absl::Duration kBriefly = absl::Milliseconds(50);

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// A job's store with a rank that waits in it, under attack.
class AttackTest : public ::testing::Test {
 protected:
  AttackTest() {
    absl::StatusOr<Socket> listener = ListenOn(kHost, 0);
    EXPECT_TRUE(listener.ok()) << listener.status();
    port_ = *BoundPort(*listener);
    server_ = *ServeTestStore(*std::move(listener));
    rank_ = *ConnectTestStore(port_);
    EXPECT_TRUE(rank_->Join(1).ok());
  }

  // The job goes on: nothing was set, nobody was lost, a late rank still gets in.
  ~AttackTest() override {
    EXPECT_TRUE(absl::IsNotFound(rank_->Get("stop", absl::ZeroDuration()).status()));
    auto late = ConnectTestStore(port_);
    EXPECT_TRUE(late.ok()) << late.status();
    if (!late.ok()) return;
    std::thread setter([&] { EXPECT_TRUE((*late)->Set("go", "on").ok()); });
    EXPECT_EQ(*rank_->Get("go", kLong), "on");
    setter.join();
  }

  Socket Stranger() const {
    absl::StatusOr<Socket> stranger = ConnectTo(kHost, port_, kLong);
    EXPECT_TRUE(stranger.ok()) << stranger.status();
    return *std::move(stranger);
  }

  static Greeting Hear(const Socket& socket) {
    Greeting greeting;
    EXPECT_TRUE(socket.ReceiveAll(&greeting, sizeof(greeting)).ok());
    return greeting;
  }

  // The server hangs up, without a word more.
  static void ExpectHungUp(const Socket& socket) {
    char answer = 0;
    EXPECT_TRUE(socket.SetReceiveTimeout(kLong).ok());
    EXPECT_TRUE(absl::IsUnavailable(socket.ReceiveAll(&answer, 1)));
  }

  int port_ = 0;
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<StoreClient> rank_;
};

TEST_F(AttackTest, TheStopKeyIsNotSetWithoutTheSecret) {
  const Socket stranger = Stranger();
  StoreRequest set;
  set.kind = StoreRequestKind::kSet;
  set.key_bytes = 4;
  set.value_bytes = 1;
  std::string bytes(reinterpret_cast<const char*>(&set), sizeof(set));
  absl::StrAppend(&bytes, "stop1", std::string(200, '\0'));
  ASSERT_TRUE(stranger.SendAll(bytes.data(), bytes.size()).ok());
  Hear(stranger);
  ExpectHungUp(stranger);
}

TEST_F(AttackTest, NobodyJoinsAsARankAndIsMissedWhenItLeaves) {
  const Socket stranger = Stranger();
  StoreRequest join;
  join.kind = StoreRequestKind::kJoin;
  join.argument = 0;
  ASSERT_TRUE(stranger.SendAll(&join, sizeof(join)).ok());
}

TEST_F(AttackTest, GarbageOfAnyLength) {
  for (const size_t bytes :
       {size_t{1}, sizeof(Claim) - 1, sizeof(Claim), sizeof(Claim) + 1, size_t{1} << 20}) {
    const Socket stranger = Stranger();
    Hear(stranger);
    const std::string noise(bytes, '\xff');
    // Refused in the middle of a long one.
    stranger.SendAll(noise.data(), noise.size()).IgnoreError();
    if (bytes >= sizeof(Claim)) ExpectHungUp(stranger);
  }
}

TEST_F(AttackTest, AWrongProof) {
  for (const int byte : {0, 31, 32, 63, 64, 95}) {
    const Socket stranger = Stranger();
    const Greeting greeting = Hear(stranger);
    absl::StatusOr<Claim> claim = MakeClaim(kTestSecret, greeting, TestPurpose());
    ASSERT_TRUE(claim.ok());
    reinterpret_cast<uint8_t*>(&*claim)[byte] ^= 1;
    ASSERT_TRUE(stranger.SendAll(&*claim, sizeof(*claim)).ok());
    ExpectHungUp(stranger);
  }
}

TEST_F(AttackTest, ARecordedHandshakeIsWorthNothing) {
  Claim recorded;
  {
    const Socket rank = Stranger();
    recorded = *MakeClaim(kTestSecret, Hear(rank), TestPurpose());
    ASSERT_TRUE(rank.SendAll(&recorded, sizeof(recorded)).ok());
    Welcome welcome;
    ASSERT_TRUE(rank.ReceiveAll(&welcome, sizeof(welcome)).ok());
  }
  const Socket stranger = Stranger();
  Hear(stranger);
  ASSERT_TRUE(stranger.SendAll(&recorded, sizeof(recorded)).ok());
  ExpectHungUp(stranger);
}

// The greeting of one connection, answered by a rank for another purpose, opens nothing.
TEST_F(AttackTest, AConnectionForSomethingElse) {
  auto other = ConnectAuthenticated(kHost, port_, TestSecret(), StorePurpose("test.1"), kLong);
  ASSERT_TRUE(other.ok()) << other.status();  // it knows the secret
  ExpectHungUp(*other);
}

TEST_F(AttackTest, AnotherSecretIsToldSo) {
  const absl::Status status =
      StoreClient::Connect(kHost, port_, FindIn("another secret of tests", ""), TestPurpose(),
                           kBriefly)
          .status();
  EXPECT_EQ(FaultOf(status), Fault::kEnvironment);
  EXPECT_THAT(MessageOf(status), HasSubstr("another PLANC_SECRET")) << status;
}

TEST_F(AttackTest, ThousandsOfConnections) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const int64_t many = std::min<int64_t>(3000, static_cast<int64_t>(limit.rlim_cur) / 2 - 100);
  std::vector<Socket> strangers;
  for (int64_t i = 0; i < many; ++i) strangers.push_back(Stranger());
  // A rank gets in beside them, while all are still there.
  const auto rank = ConnectTestStore(port_);
  ASSERT_TRUE(rank.ok()) << rank.status();
  EXPECT_TRUE((*rank)->Set("beside", "them").ok());
}

// A listener alone, with short times.
class ListenerTest : public ::testing::Test {
 protected:
  void Listen(const StrangerLimits& limits) {
    absl::StatusOr<Socket> listener = ListenOn(kHost, 0);
    ASSERT_TRUE(listener.ok()) << listener.status();
    port_ = *BoundPort(*listener);
    listener_ =
        *AuthenticatedListener::Create(*std::move(listener), kTestSecret, SecretId{}, limits);
  }
  Socket Stranger() const { return *ConnectTo(kHost, port_, kLong); }

  int port_ = 0;
  std::unique_ptr<AuthenticatedListener> listener_;
};

TEST_F(ListenerTest, WhoSaysNothingIsDroppedInTime) {
  StrangerLimits limits;
  limits.longest = absl::Milliseconds(20);
  Listen(limits);
  const Socket silent = Stranger();
  while (listener_->strangers() == 0) listener_->Take();
  ASSERT_TRUE(listener_->NextDeadline().has_value());
  // One byte now and then does not help.
  while (listener_->strangers() > 0) {
    silent.SendAll("x", 1).IgnoreError();
    EXPECT_TRUE(listener_->Take().empty());
  }
  EXPECT_FALSE(listener_->NextDeadline().has_value());
}

TEST_F(ListenerTest, TheOldestMakesWay) {
  StrangerLimits limits;
  limits.most = 3;
  limits.fair = absl::Milliseconds(1);
  Listen(limits);
  std::vector<Socket> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(Stranger());
  absl::Status joined = absl::UnknownError("");
  std::thread rank([&] {
    joined = ConnectAuthenticated(kHost, port_, TestSecret(), TestPurpose(), kLong).status();
  });
  bool through = false;
  while (!through) {
    through = !listener_->Take().empty();
    EXPECT_LE(listener_->strangers(), 3);
  }
  rank.join();
  EXPECT_TRUE(joined.ok()) << joined;
}

TEST_F(ListenerTest, WithoutDescriptorsItPausesInsteadOfSpinning) {
  Listen({});
  const Socket stranger = Stranger();
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int lowest_free = dup(0);
  close(lowest_free);
  const rlimit none{static_cast<rlim_t>(lowest_free), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(listener_->Take().empty());
  EXPECT_EQ(listener_->strangers(), 0);
  const std::optional<absl::Time> again = listener_->NextDeadline();
  EXPECT_TRUE(again.has_value()) << "the poll would report the same at once";
  setrlimit(RLIMIT_NOFILE, &before);
  while (listener_->strangers() == 0) listener_->Take();
  EXPECT_GE(absl::Now(), again.value_or(absl::InfinitePast()));
}

// Somebody else listens where the ranks look for rank 0.
absl::Status ConnectToStranger(const std::string& says, bool hangs_up, absl::Duration timeout) {
  absl::StatusOr<Socket> listener = ListenOn(kHost, 0);
  std::thread stranger([&listener, &says, hangs_up] {
    const Socket one = Socket(accept(listener->get(), nullptr, nullptr));
    one.SendAll(says.data(), says.size()).IgnoreError();
    char byte = 0;
    while (!hangs_up && one.ReceiveAll(&byte, 1).ok()) {
    }
  });
  const absl::Status status =
      StoreClient::Connect(kHost, *BoundPort(*listener), TestSecret(), TestPurpose(), timeout)
          .status();
  stranger.join();
  EXPECT_EQ(FaultOf(status), Fault::kEnvironment) << status;
  EXPECT_THAT(MessageOf(status), HasSubstr("store of rank 0: 127.0.0.1 port "));
  return status;
}

TEST(StrangerTest, SpeaksSomethingElse) {
  EXPECT_THAT(MessageOf(ConnectToStranger("SSH-2.0-OpenSSH_9.2\r\n", false, kBriefly)),
              HasSubstr("who listens there is no rank of this job: it says "
                        "\"SSH-2.0-OpenSSH_9.2\\r\\n\""));
}

TEST(StrangerTest, HangsUp) {
  EXPECT_THAT(MessageOf(ConnectToStranger("", true, kBriefly)),
              HasSubstr("hangs up without a word"));
}

TEST(StrangerTest, DoesNotKnowTheSecretItself) {
  Greeting greeting;
  std::string says(reinterpret_cast<const char*>(&greeting), sizeof(greeting));
  says += std::string(sizeof(Welcome), 'x');
  EXPECT_THAT(MessageOf(ConnectToStranger(says, false, kBriefly)),
              HasSubstr("it does not know the secret of the job"));
}

TEST(StrangerTest, IsAnotherVersion) {
  Greeting greeting;
  greeting.version = 2;
  const std::string says(reinterpret_cast<const char*>(&greeting), sizeof(greeting));
  EXPECT_THAT(MessageOf(ConnectToStranger(says, false, kBriefly)),
              HasSubstr("another version of planc"));
}

TEST(StrangerTest, NamesASecretThatThereIsNot) {
  Greeting greeting;
  greeting.secret_id.fill(7);
  const std::string says(reinterpret_cast<const char*>(&greeting), sizeof(greeting));
  EXPECT_THAT(MessageOf(ConnectToStranger(says, false, kBriefly)),
              HasSubstr("who listens there has none"));
}

class SecretFileTest : public ::testing::Test {
 protected:
  SecretFileTest()
      : folder_(absl::StrCat(::testing::TempDir(), "/",
                             ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
  }
  std::string Path(const SecretId& id) const {
    return absl::StrCat(folder_, "/.planc-secret-",
                        absl::BytesToHexString(std::string(id.begin(), id.end())));
  }

  const std::string folder_;
};

TEST_F(SecretFileTest, IsForThisUserAloneAndGoes) {
  SecretId id;
  {
    const auto file = SecretFile::Create(folder_ + "/made");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto other = SecretFile::Create(folder_);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_NE((*file)->secret(), (*other)->secret());
    id = (*other)->id();
    struct stat info {};
    ASSERT_EQ(stat(Path(id).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600);
    EXPECT_EQ(*ReadSecretFile(folder_, id), (*other)->secret());
    EXPECT_EQ((*other)->secret().size(), 64);
  }
  EXPECT_FALSE(std::filesystem::exists(Path(id)));
  EXPECT_TRUE(absl::IsUnavailable(ReadSecretFile(folder_, id).status()));
}

TEST_F(SecretFileTest, OneThatOthersCanReadIsNone) {
  const auto file = SecretFile::Create(folder_);
  ASSERT_TRUE(file.ok()) << file.status();
  chmod(Path((*file)->id()).c_str(), 0640);
  const absl::Status status = ReadSecretFile(folder_, (*file)->id()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(MessageOf(status), HasSubstr("set PLANC_SECRET"));
}

TEST_F(SecretFileTest, ALinkOrAPipeIsNone) {
  const auto file = SecretFile::Create(folder_);
  ASSERT_TRUE(file.ok()) << file.status();
  SecretId link{};
  link[0] = 1;
  std::filesystem::create_symlink(Path((*file)->id()), Path(link));
  EXPECT_FALSE(ReadSecretFile(folder_, link).ok());
  SecretId pipe{};
  pipe[0] = 2;
  ASSERT_EQ(mkfifo(Path(pipe).c_str(), 0600), 0);
  EXPECT_FALSE(ReadSecretFile(folder_, pipe).ok());
}

TEST_F(SecretFileTest, WhatAKilledRankLeftBehindIsCleanedUp) {
  std::filesystem::create_directories(folder_);
  SecretId old_id{};
  old_id[0] = 1;
  SecretId new_id{};
  new_id[0] = 2;
  for (const SecretId& id : {old_id, new_id}) std::ofstream(Path(id)) << "x";
  std::filesystem::last_write_time(
      Path(old_id), std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  const auto file = SecretFile::Create(folder_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(std::filesystem::exists(Path(old_id)));
  EXPECT_TRUE(std::filesystem::exists(Path(new_id))) << "of another start, perhaps";
}

TEST(FindInTest, ASecretOnOneSideOnlyIsTold) {
  SecretId drawn{};
  drawn[3] = 9;
  EXPECT_EQ(*FindIn("a secret of the user", "")(SecretId{}), "a secret of the user");
  EXPECT_THAT(MessageOf(FindIn("", "x")(SecretId{}).status()), HasSubstr("this rank has none"));
  EXPECT_THAT(MessageOf(FindIn("a secret", "x")(drawn).status()),
              HasSubstr("who listens there has none"));
}

}  // namespace
}  // namespace planc
