#include "runtime/process_group/gloo_proof.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/process_group/gloo_group.h"
#include "runtime/process_group/memory_store.h"
#include "schemas/fault.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);

// The statuses of members that prove these secrets to each other.
std::vector<absl::Status> Connect(const std::vector<std::string>& secrets) {
  MemoryStore store;
  std::vector<absl::Status> ended(secrets.size());
  std::vector<std::unique_ptr<ProcessGroup>> groups(secrets.size());
  std::vector<std::thread> members;
  for (size_t member = 0; member < secrets.size(); ++member) {
    members.emplace_back([&, member] {
      GroupMembership membership{"dp", {}, static_cast<int64_t>(member)};
      for (size_t rank = 0; rank < secrets.size(); ++rank) membership.members.push_back(10 + rank);
      const auto network = GlooNetwork::Create("127.0.0.1", secrets[member]);
      ASSERT_TRUE(network.ok()) << network.status();
      auto connected = (*network)->Connect("key", {membership}, &store, kLong, kLong);
      ended[member] = connected.status();
      if (connected.ok()) groups[member] = std::move(connected->front());
    });
  }
  for (std::thread& member : members) member.join();
  return ended;
}

TEST(GlooProofTest, MembersWithTheSecretConnect) {
  for (const absl::Status& status : Connect({"secret", "secret", "secret"})) {
    EXPECT_TRUE(status.ok()) << status;
  }
}

// Somebody who speaks the protocol, with all addresses, but without the secret.
TEST(GlooProofTest, WhoDoesNotKnowItIsFoundOutByAll) {
  const std::vector<absl::Status> ended = Connect({"secret", "guessed", "secret"});
  for (const absl::Status& status : ended) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(FaultOf(status), Fault::kPeerLost) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("did not prove the secret of the job"));
  }
  EXPECT_THAT(std::string(ended[0].message()), HasSubstr("as member 1 of"));
  EXPECT_THAT(std::string(ended[1].message()), HasSubstr("as member 0, 2 of"));
}

TEST(GlooProofTest, AProofIsForOneConnectionInOneDirection) {
  const Digest a = Sha256("a");
  const Digest b = Sha256("b");
  const Digest proof = PeerProof("secret", "key", 0, 1, a, b);
  EXPECT_EQ(proof, PeerProof("secret", "key", 0, 1, a, b));
  EXPECT_NE(proof, PeerProof("secret", "key", 1, 0, b, a)) << "sent back";
  EXPECT_NE(proof, PeerProof("secret", "key", 0, 1, b, a));
  EXPECT_NE(proof, PeerProof("secret", "key", 0, 2, a, b));
  EXPECT_NE(proof, PeerProof("secret", "key 1", 0, 1, a, b));
  EXPECT_NE(proof, PeerProof("secrets", "key", 0, 1, a, b));
}

}  // namespace
}  // namespace planc
