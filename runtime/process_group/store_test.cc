#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/process_group/memory_store.h"
#include "runtime/process_group/socket.h"
#include "runtime/process_group/store_client.h"
#include "runtime/process_group/store_server.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

constexpr char kHost[] = "127.0.0.1";
constexpr absl::Duration kLong = absl::Seconds(30);

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

std::unique_ptr<StoreServer> StartServer() {
  absl::StatusOr<Socket> listener = ListenOn(kHost, 0);
  EXPECT_TRUE(listener.ok()) << listener.status();
  auto server = StoreServer::Start(*std::move(listener));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::unique_ptr<StoreClient> Connect(const StoreServer& server) {
  auto client = StoreClient::Connect(kHost, server.port(), kLong);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

TEST(StoreTest, WaitsEndWhenARankIsLost) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<StoreClient> waiting = Connect(*server);
  std::unique_ptr<StoreClient> passing = Connect(*server);  // has not told whose it is
  std::unique_ptr<StoreClient> rank = Connect(*server);
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
  const auto client = Connect(*server);
  const auto other = Connect(*server);
  TestRules(client.get(), other.get());
}

TEST(StoreTest, ManyClientsWaitForOneKey) {
  const auto server = StartServer();
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&server, i] {
      const auto client = Connect(*server);
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
  const auto client = Connect(*server);
  {
    absl::StatusOr<Socket> stranger = ConnectTo(kHost, server->port(), kLong);
    ASSERT_TRUE(stranger.ok());
    StoreRequest request;
    request.argument = 1'000'000;
    request.key_bytes = 1;
    ASSERT_TRUE(stranger->SendAll(&request, sizeof(request)).ok());
    ASSERT_TRUE(stranger->SendAll("k", 1).ok());
  }
  ASSERT_TRUE(client->Set("k", "v").ok());
  EXPECT_EQ(*client->Get("k", kLong), "v");
}

TEST(StoreTest, WhoeverBreaksTheProtocolIsDropped) {
  const auto server = StartServer();
  const auto client = Connect(*server);
  absl::StatusOr<Socket> stranger = ConnectTo(kHost, server->port(), kLong);
  ASSERT_TRUE(stranger.ok());
  const std::string noise(100, '?');
  ASSERT_TRUE(stranger->SendAll(noise.data(), noise.size()).ok());
  char answer = 0;
  EXPECT_TRUE(absl::IsUnavailable(stranger->ReceiveAll(&answer, 1)));
  EXPECT_TRUE(client->Set("k", "v").ok());
}

TEST(StoreTest, WithoutAServerTheErrorNamesRankZero) {
  absl::StatusOr<Socket> listener = ListenOn(kHost, 0);
  ASSERT_TRUE(listener.ok());
  const int port = *BoundPort(*listener);
  listener->Close();
  const absl::Status status = StoreClient::Connect(kHost, port, absl::Milliseconds(50)).status();
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
