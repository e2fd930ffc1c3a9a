// One call into each system library: the package is installed, its headers compile, it links.
#include <array>
#include <boost/context/fiber.hpp>
#include <string>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/random/random.h>
#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <benchmark/benchmark.h>
#include <glog/logging.h>
#include <gloo/allreduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwloc.h>
#include <hwy/highway.h>
#include <xxhash.h>
#include <yaml-cpp/yaml.h>
#include <dnnl.hpp>
#include <nlohmann/json.hpp>

namespace {

TEST(SmokeTest, Abseil) {
  absl::flat_hash_map<std::string, int> map;
  map["one"] = 1;
  absl::StatusOr<int> value = absl::InvalidArgumentError(absl::StrCat("n=", map["one"]));
  EXPECT_THAT(std::string(value.status().message()), testing::HasSubstr("n=1"));
  EXPECT_EQ(absl::StrFormat("%05.1f", 2.5), "002.5");
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  EXPECT_EQ(absl::FormatDuration(absl::Milliseconds(1500)), "1.5s");
  absl::BitGen generator;
  EXPECT_LT(absl::Uniform(generator, 0, 10), 10);
}

TEST(SmokeTest, YamlCppAndMarks) {
  const YAML::Node node = YAML::Load("a:\n  b: [1, 2]\n");
  EXPECT_EQ(node["a"]["b"][1].as<int>(), 2);
  EXPECT_EQ(node["a"]["b"].Mark().line, 1);
}

TEST(SmokeTest, Glog) { CHECK_EQ(1, 1) << "glog is linked"; }

TEST(SmokeTest, OneDnn) {
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  EXPECT_EQ(engine.get_kind(), dnnl::engine::kind::cpu);
  EXPECT_EQ(dnnl_version()->cpu_runtime, unsigned{DNNL_RUNTIME_OMP});
}

TEST(SmokeTest, Highway) {
  const hwy::HWY_NAMESPACE::ScalableTag<float> tag;
  std::vector<float> lanes(hwy::HWY_NAMESPACE::Lanes(tag));
  hwy::HWY_NAMESPACE::StoreU(hwy::HWY_NAMESPACE::Set(tag, 3.0f), tag, lanes.data());
  EXPECT_EQ(lanes.back(), 3.0f);
  EXPECT_NE(hwy::SupportedTargets(), 0);
}

TEST(SmokeTest, Gloo) {
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  gloo::rendezvous::HashStore store;
  auto context = std::make_shared<gloo::rendezvous::Context>(0, 1);
  context->connectFullMesh(store, device);
  float value = 2.0f;
  gloo::AllreduceOptions options(context);
  options.setOutput(&value, 1);
  options.setReduceFunction([](void*, const void*, const void*, size_t) {});
  gloo::allreduce(options);
  EXPECT_EQ(value, 2.0f);
}

TEST(SmokeTest, Json) {
  EXPECT_EQ(nlohmann::json::parse(R"({"loss": 2.5})")["loss"].get<double>(), 2.5);
}

TEST(SmokeTest, XxHash) { EXPECT_EQ(XXH64("", 0, 0), 0xEF46DB3751D8E999ULL); }

TEST(SmokeTest, Benchmark) {
  benchmark::internal::Benchmark* const registered =
      benchmark::RegisterBenchmark("Smoke", [](benchmark::State& state) {
        for (auto _ : state) benchmark::ClobberMemory();
      });
  registered->Iterations(3);
  EXPECT_EQ(benchmark::RunSpecifiedBenchmarks("Smoke"), 1U);
}

TEST(SmokeTest, Hwloc) {
  hwloc_topology_t topology;
  ASSERT_EQ(hwloc_topology_init(&topology), 0);
  ASSERT_EQ(hwloc_topology_load(topology), 0);
  EXPECT_GT(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU), 0);
  hwloc_topology_destroy(topology);
}

TEST(SmokeTest, BoostContext) {
  int steps = 0;
  boost::context::fiber fiber([&steps](boost::context::fiber&& caller) {
    ++steps;
    return std::move(caller);
  });
  fiber = std::move(fiber).resume();
  EXPECT_EQ(steps, 1);
}

}  // namespace
