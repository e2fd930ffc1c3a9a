#include "runtime/checkpoint/checkpoint_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"

namespace planc {
namespace {

constexpr int64_t kStateBytes = 3 * 4;  // of an element

// Bytes of tensors by file, as a real save wrote them.
std::map<std::string, int64_t> SavedBytes(const Plan& plan) {
  const std::string directory = testing::TempDir() + "checkpoint_size";
  std::filesystem::remove_all(directory);
  EXPECT_TRUE(SaveState(plan, directory, 1, 1).ok());
  const auto manifest = ReadManifest(directory + "/step-00000001");
  std::map<std::string, int64_t> bytes;
  for (const auto& [name, parameter] : manifest->parameters) {
    for (const auto& tensors : parameter.state) {
      for (const SavedTensor& tensor : tensors) bytes[tensor.file] += 4 * BoxElements(tensor.box);
    }
  }
  return bytes;
}

TEST(CheckpointSize, IsWhatASaveWrites) {
  for (const std::vector<int64_t>& mesh : std::vector<std::vector<int64_t>>{
           {1, 1, 1, 1}, {1, 1, 3, 1}, {1, 1, 1, 4}, {2, 2, 2, 2}, {3, 1, 2, 1}, {1, 2, 5, 3}}) {
    Plan plan = CheckpointTestPlan(mesh[0], mesh[1], mesh[2], mesh[3]);
    plan.ranks_per_node = plan.mesh.WorldSize() / mesh[0];  // a node for each stage
    plan.job.mutable_cluster()->set_storage_bandwidth(1000);
    const CheckpointSize size = CheckpointSizeOf(plan);
    int64_t total = 0;
    int64_t largest = 0;
    for (const auto& [file, bytes] : SavedBytes(plan)) {
      total += bytes;
      largest = std::max(largest, bytes);
    }
    EXPECT_EQ(size.total_bytes, total);
    EXPECT_EQ(size.total_bytes, kStateBytes * (13 * 6 + 3 * (72 + 72 + 12 + 6)));
    EXPECT_EQ(size.largest_rank_bytes, largest);
    EXPECT_LE(size.largest_node_bytes, total);
    EXPECT_GE(size.largest_node_bytes * mesh[0], total);
    EXPECT_DOUBLE_EQ(size.write_seconds, static_cast<double>(size.largest_node_bytes) / 1000);
  }
}

}  // namespace
}  // namespace planc
