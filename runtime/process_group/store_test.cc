#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/process_group/handshake/handshake.h"
#include "runtime/process_group/handshake/inherited_channel.h"
#include "runtime/process_group/memory_store.h"
#include "runtime/process_group/socket.h"
#include "runtime/process_group/store_client.h"
#include "runtime/process_group/store_protocol.h"
#include "runtime/process_group/store_server.h"
#include "runtime/process_group/test_store.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

constexpr char kHost[] = "127.0.0.1";
constexpr absl::Duration kLong = absl::Seconds(30);

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

struct Server {
  std::unique_ptr<StoreServer> server;
  int port;
};

Server StartServer(const StoreLimits& limits = {}) {
  absl::StatusOr<Socket> listener = ListenOn(kHost, 0);
  EXPECT_TRUE(listener.ok()) << listener.status();
  const int port = *BoundPort(*listener);
  auto server = ServeTestStore(*std::move(listener), limits);
  EXPECT_TRUE(server.ok()) << server.status();
  return {*std::move(server), port};
}

std::unique_ptr<StoreClient> Connect(const Server& server) {
  auto client = ConnectTestStore(server.port);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

// A connection that has proven the secret, and may say anything.
Socket ConnectRaw(const Server& server) {
  auto socket = ConnectAuthenticated(kHost, server.port, TestSecret(), TestPurpose(), kLong);
  EXPECT_TRUE(socket.ok()) << socket.status();
  return *std::move(socket);
}

TEST(StoreTest, WaitsEndWhenARankIsLost) {
  const Server server = StartServer();
  const std::unique_ptr<StoreClient> waiting = Connect(server);
  std::unique_ptr<StoreClient> passing = Connect(server);  // has not told whose it is
  std::unique_ptr<StoreClient> rank = Connect(server);
  ASSERT_TRUE(rank->Join(3).ok());
  ASSERT_TRUE(rank->Set("set", "before").ok());
  absl::Status ended;
  std::thread waiter([&] { ended = waiting->Get("never", kLong).status(); });
  passing.reset();
  rank.reset();
  waiter.join();
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_EQ(MessageOf(ended), "rank 3 is gone");
  EXPECT_EQ(waiting->Get("never", kLong).status(), ended) << "nor does anybody wait from then on";
  EXPECT_EQ(*waiting->Get("set", kLong), "before");
  EXPECT_TRUE(absl::IsNotFound(waiting->Get("never", absl::ZeroDuration()).status()));
}

// The rules that every store keeps.
void TestRules(KeyValueStore* store, KeyValueStore* other) {
  EXPECT_TRUE(absl::IsNotFound(store->Get("a", absl::ZeroDuration()).status()));
  ASSERT_TRUE(store->Set("a", "value").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(other->Set("a", "again")));
  EXPECT_EQ(*other->Get("a", kLong), "value");
  EXPECT_EQ(*store->Get("a", absl::ZeroDuration()), "value");

  ASSERT_TRUE(store->Set("twice", "2", 2).ok());
  EXPECT_EQ(*store->Get("twice", kLong), "2");
  EXPECT_EQ(*other->Get("twice", kLong), "2");
  EXPECT_TRUE(absl::IsNotFound(store->Get("twice", absl::ZeroDuration()).status()));
  EXPECT_TRUE(store->Set("twice", "3").ok());

  const absl::Status late = store->Get("never", absl::Milliseconds(20)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(MessageOf(late), HasSubstr("never"));

  const std::string large(3'000'000, 'x');
  std::thread writer([&] { ASSERT_TRUE(other->Set("large", large).ok()); });
  EXPECT_EQ(*store->Get("large", kLong), large);
  writer.join();
}

TEST(StoreTest, InMemory) {
  MemoryStore store;
  TestRules(&store, &store);
}

TEST(StoreTest, OverTcp) {
  const auto server = StartServer();
  const auto client = Connect(server);
  const auto other = Connect(server);
  TestRules(client.get(), other.get());
}

TEST(StoreTest, ThroughAnInheritedChannel) {
  absl::StatusOr<InheritedChannel> channel = InheritedChannel::Create();
  ASSERT_TRUE(channel.ok());
  std::unique_ptr<StoreClient> early;
  std::thread first([&] { early = *StoreClient::ConnectInherited(channel->clients.get(), kLong); });
  auto server = StoreServer::Start(
      std::make_unique<InheritedConnections>(std::move(channel->server)), Digest{});
  ASSERT_TRUE(server.ok()) << server.status();
  first.join();
  auto client = StoreClient::ConnectInherited(channel->clients.get(), kLong);
  ASSERT_TRUE(client.ok()) << client.status();
  TestRules(client->get(), early.get());
  early.reset();
  client->reset();
  server->reset();
  const absl::Status gone = StoreClient::ConnectInherited(channel->clients.get(), kLong).status();
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_THAT(MessageOf(gone), HasSubstr("rank 0 is gone"));
}

TEST(StoreTest, OneRankJoinsOnceAndAsItself) {
  StoreLimits limits;
  limits.world_size = 2;
  const Server server = StartServer(limits);
  const auto one = Connect(server);
  const auto two = Connect(server);
  EXPECT_TRUE(one->Join(1).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(two->Join(1)));
  EXPECT_TRUE(absl::IsAlreadyExists(one->Join(0))) << "it is rank 1";
  EXPECT_FALSE(two->Join(2).ok()) << "there are two";
  EXPECT_FALSE(two->Join(-1).ok());
}

TEST(StoreTest, AFullTableTakesNoMoreUntilSomethingIsRead) {
  StoreLimits limits;
  limits.table_bytes = 1000;
  const Server server = StartServer(limits);
  const auto client = Connect(server);
  ASSERT_TRUE(client->Set("a", std::string(700, 'x'), 1).ok());
  const absl::Status full = client->Set("b", std::string(300, 'x'));
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_TRUE(absl::IsAlreadyExists(client->Set("a", "again")));
  EXPECT_TRUE(client->Get("a", kLong).ok());
  EXPECT_TRUE(client->Set("b", std::string(300, 'x')).ok());
}

TEST(StoreTest, TooManyConnectionsAreRefused) {
  StoreLimits limits;
  limits.most_clients = 2;
  const Server server = StartServer(limits);
  const auto one = Connect(server);
  const auto two = Connect(server);
  const auto three = Connect(server);
  EXPECT_TRUE(one->Set("a", "1").ok() && two->Set("b", "2").ok());
  EXPECT_TRUE(absl::IsUnavailable(three->Set("c", "3")));
}

TEST(StoreTest, WhatIsNoRequestEndsTheConnection) {
  const Server server = StartServer();
  const auto client = Connect(server);
  StoreRequest large;
  large.value_bytes = kMaximumStoreBytes + 1;
  StoreRequest long_key;
  long_key.key_bytes = kMostKeyBytes + 1;
  StoreRequest unknown;
  unknown.kind = static_cast<StoreRequestKind>(4);
  StoreRequest negative;
  negative.kind = StoreRequestKind::kSet;
  negative.argument = -1;
  for (const StoreRequest& request : {large, long_key, unknown, negative}) {
    const Socket other = ConnectRaw(server);
    ASSERT_TRUE(other.SendAll(&request, sizeof(request)).ok());
    char answer = 0;
    EXPECT_TRUE(absl::IsUnavailable(other.ReceiveAll(&answer, 1)));
  }
  // The second request before the answer to the first.
  const Socket hasty = ConnectRaw(server);
  StoreRequest wait;
  wait.argument = 60'000'000;
  wait.key_bytes = 1;
  const std::string text(reinterpret_cast<const char*>(&wait), sizeof(wait));
  const std::string twice = text + "k" + text + "k";
  ASSERT_TRUE(hasty.SendAll(twice.data(), twice.size()).ok());
  char answer = 0;
  EXPECT_TRUE(absl::IsUnavailable(hasty.ReceiveAll(&answer, 1)));
  EXPECT_TRUE(client->Set("k", "v").ok());
}

TEST(StoreTest, ManyClientsWaitForOneKey) {
  const auto server = StartServer();
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&server, i] {
      const auto client = Connect(server);
      if (i == 0) {
        EXPECT_TRUE(client->Set("go", "now").ok());
      }
      EXPECT_EQ(*client->Get("go", kLong), "now");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(StoreTest, AClientThatWaitsAndVanishesHarmsNobody) {
  const auto server = StartServer();
  const auto client = Connect(server);
  {
    const Socket other = ConnectRaw(server);
    StoreRequest request;
    request.argument = 1'000'000;
    request.key_bytes = 1;
    ASSERT_TRUE(other.SendAll(&request, sizeof(request)).ok());
    ASSERT_TRUE(other.SendAll("k", 1).ok());
  }
  ASSERT_TRUE(client->Set("k", "v").ok());
  EXPECT_EQ(*client->Get("k", kLong), "v");
}

TEST(StoreTest, WhoeverBreaksTheProtocolIsDropped) {
  const auto server = StartServer();
  const auto client = Connect(server);
  const Socket other = ConnectRaw(server);
  const std::string noise(100, '?');
  ASSERT_TRUE(other.SendAll(noise.data(), noise.size()).ok());
  char answer = 0;
  EXPECT_TRUE(absl::IsUnavailable(other.ReceiveAll(&answer, 1)));
  EXPECT_TRUE(client->Set("k", "v").ok());
}

TEST(StoreTest, WithoutAServerTheErrorNamesRankZero) {
  absl::StatusOr<Socket> listener = ListenOn(kHost, 0);
  ASSERT_TRUE(listener.ok());
  const int port = *BoundPort(*listener);
  listener->Close();
  const absl::Status status =
      StoreClient::Connect(kHost, port, TestSecret(), TestPurpose(), absl::Milliseconds(50))
          .status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(MessageOf(status), HasSubstr("store of rank 0"));
}

TEST(StoreTest, ABusyPortIsAnError) {
  absl::StatusOr<Socket> listener = ListenOn(kHost, 0);
  ASSERT_TRUE(listener.ok());
  const absl::Status status = ListenOn(kHost, *BoundPort(*listener)).status();
  EXPECT_THAT(MessageOf(status), HasSubstr("cannot listen on port"));
}

}  // namespace
}  // namespace planc
