// How fast a checkpoint is written, beside a plain sequential writer of the same bytes to the same
// disk, in turns. Both wait until the data are on the disk.
//   checkpoint_benchmark DIRECTORY [MEBIBYTES] [ROUNDS]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/save.h"
#include "schemas/plan.h"

namespace planc {
namespace {

constexpr int64_t kColumns = 4096;
constexpr int64_t kLayers = 16;
constexpr int64_t kStates = 3;

// One rank with layers of one matrix each.
Plan PlanOf(int64_t rows) {
  Plan plan;
  plan.job.set_job("benchmark");
  plan.job.mutable_model()->set_layers(kLayers);
  plan.job.mutable_checkpoint()->set_keep(1);
  plan.pools.push_back({"master", MemoryKind::kOptimizer, 0});
  Buffer buffer;
  buffer.name = "master";
  plan.buffers.push_back(buffer);
  Unit unit;
  unit.name = "layer";
  unit.per_layer = true;
  unit.elements = rows * kColumns;
  unit.master = unit.first_moment = unit.second_moment = 0;
  plan.units.push_back(unit);
  Parameter parameter;
  parameter.name = "model.layers.{layer}.weight";
  parameter.shape = parameter.local_shape = {rows, kColumns};
  plan.params.push_back(parameter);
  RankClass rank_class;
  for (int layer = 0; layer < kLayers; ++layer) rank_class.layers.push_back(layer);
  rank_class.pool_slots = {static_cast<int32_t>(kLayers)};
  plan.classes.push_back(rank_class);
  return plan;
}

double PlainSeconds(const std::vector<float>& data, const std::string& path) {
  constexpr int64_t kPiece = int64_t{8} << 20;
  const absl::Time begin = absl::Now();
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const char* const bytes = reinterpret_cast<const char*>(data.data());
  const int64_t size = static_cast<int64_t>(data.size() * sizeof(float));
  bool ok = file >= 0;
  for (int64_t at = 0; ok && at < size;) {
    const ssize_t written =
        write(file, bytes + at, static_cast<size_t>(std::min(size - at, kPiece)));
    ok = written > 0;
    at += written;
  }
  ok = ok && fsync(file) == 0 && close(file) == 0;
  if (!ok) {
    std::perror(path.c_str());
    std::exit(1);
  }
  return absl::ToDoubleSeconds(absl::Now() - begin);
}

double CheckpointSeconds(const Plan& plan, const std::vector<ShardView>& shards,
                         const std::string& directory) {
  SoleAgreement agreement;
  const absl::Time begin = absl::Now();
  const absl::Status saved = SaveCheckpoint(plan, 0, shards, 1, directory, agreement);
  if (!saved.ok()) {
    std::fprintf(stderr, "%s\n", std::string(saved.message()).c_str());
    std::exit(1);
  }
  return absl::ToDoubleSeconds(absl::Now() - begin);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Run(const std::string& directory, int64_t mebibytes, int rounds) {
  const int64_t rows = (mebibytes << 20) / (kLayers * kStates * kColumns * 4);
  const Plan plan = PlanOf(rows);
  const int64_t count = rows * kColumns;
  std::vector<float> data(static_cast<size_t>(count * kLayers * kStates));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i * 2654435761u % 1000003);
  std::vector<ShardView> shards;
  for (int layer = 0; layer < kLayers; ++layer) {
    ShardView shard;
    shard.layer = layer;
    shard.master = data.data() + layer * kStates * count;
    shard.m = shard.master + count;
    shard.v = shard.m + count;
    shard.count = count;
    shards.push_back(shard);
  }
  const double size = static_cast<double>(data.size() * sizeof(float)) / (1 << 20);
  std::vector<double> plain;
  std::vector<double> checkpoint;
  std::printf("%.0f MiB\nround   plain MiB/s   checkpoint MiB/s\n", size);
  for (int round = 0; round < rounds; ++round) {
    const std::string file = absl::StrCat(directory, "/plain");
    const std::string folder = absl::StrCat(directory, "/checkpoints");
    const auto write_plain = [&] { plain.push_back(size / PlainSeconds(data, file)); };
    const auto write_checkpoint = [&] {
      checkpoint.push_back(size / CheckpointSeconds(plan, shards, folder));
    };
    if (round % 2 == 0) write_plain();
    write_checkpoint();
    if (round % 2 == 1) write_plain();
    RemoveTree(file).IgnoreError();
    RemoveTree(folder).IgnoreError();
    std::printf("%5d %13.0f %18.0f\n", round, plain.back(), checkpoint.back());
    std::fflush(stdout);
  }
  std::printf("median %12.0f %18.0f   %.0f%%\n", Median(plain), Median(checkpoint),
              100 * Median(checkpoint) / Median(plain));
  return 0;
}

}  // namespace
}  // namespace planc

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: checkpoint_benchmark DIRECTORY [MEBIBYTES] [ROUNDS]\n");
    return 2;
  }
  return planc::Run(argv[1], argc > 2 ? std::atoll(argv[2]) : 1024,
                    argc > 3 ? std::atoi(argv[3]) : 7);
}
