// planc checkpoint export and import, for each architecture: an independent program reads what was
// exported, and what is imported is what was exported, bit for bit.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planc/commands.h"
#include "runtime/checkpoint/verify_checkpoint.h"
#include "tests/huggingface/folder_files.h"
#include "tests/huggingface/huggingface_fixture.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// The nearer of the two bfloat16 values around a finite one, the even one in the middle.
uint32_t NearestBf16(float value) {
  const uint32_t low = BitsOf(value) & 0xffff0000u;
  const uint32_t high = low + 0x10000u;
  const double below = std::abs(double{value} - double{std::bit_cast<float>(low)});
  const double above = std::abs(double{std::bit_cast<float>(high)} - double{value});
  if (below == above) return (low & 0x10000u) == 0 ? low : high;
  return below < above ? low : high;
}

// A tensor as the published files of its architecture hold it.
struct PublishedTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

bool IsConv1d(const std::string& name) {
  for (const char* const end : {"attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight"}) {
    if (name.size() > std::strlen(end) &&
        name.compare(name.size() - std::strlen(end), std::string::npos, end) == 0) {
      return name.compare(0, 12, "transformer.") == 0;
    }
  }
  return false;
}

// Element [row, column] of the parameter in `source`, whose rows have `columns` elements, becomes
// element [column, first + row] of `target`.
void PutTransposed(const std::string& source, int64_t rows, int64_t columns, int64_t first,
                   PublishedTensor* target) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      target->values[static_cast<size_t>(column * target->shape[1] + first + row)] =
          WeightOf(source, row * columns + column);
    }
  }
}

// What an exported folder must hold, from the values that Save stored.
std::map<std::string, PublishedTensor> Published(const Plan& plan) {
  std::map<std::string, PublishedTensor> tensors;
  const int64_t hidden = plan.job.model().hidden();
  for (const Parameter& parameter : plan.params) {
    const bool per_layer = plan.units[static_cast<size_t>(parameter.unit)].per_layer;
    for (int layer = 0; layer < (per_layer ? plan.job.model().layers() : 1); ++layer) {
      const std::string name = ParameterName(parameter.name, layer);
      const size_t fused = name.find(".c_attn.");
      std::vector<int64_t> shape = parameter.shape;
      const bool conv1d = IsConv1d(name);
      const int64_t elements = BoxElements(Box{{}, shape});
      if (fused != std::string::npos) {
        const int64_t part = name[fused + 8] == 'q' ? 0 : name[fused + 8] == 'k' ? 1 : 2;
        PublishedTensor& tensor = tensors[name.substr(0, fused + 8) + name.substr(fused + 10)];
        tensor.shape = {3 * hidden};
        if (shape.size() == 2) tensor.shape.insert(tensor.shape.begin(), hidden);
        tensor.values.resize(static_cast<size_t>(3 * elements));
        if (shape.size() == 2) {
          PutTransposed(name, hidden, hidden, part * hidden, &tensor);
        } else {
          for (int64_t i = 0; i < hidden; ++i) {
            tensor.values[static_cast<size_t>(part * hidden + i)] = WeightOf(name, i);
          }
        }
        continue;
      }
      PublishedTensor& tensor = tensors[name];
      tensor.values.resize(static_cast<size_t>(elements));
      tensor.shape = shape;
      if (conv1d) {
        tensor.shape = {shape[1], shape[0]};
        PutTransposed(name, shape[0], shape[1], 0, &tensor);
      } else {
        for (int64_t i = 0; i < elements; ++i) {
          tensor.values[static_cast<size_t>(i)] = WeightOf(name, i);
        }
      }
    }
  }
  return tensors;
}

// Compares what the independent reader found with what was saved.
void ExpectDigests(const std::map<std::string, TensorDigest>& digests, const Plan& plan,
                   bool bf16) {
  const std::map<std::string, PublishedTensor> published = Published(plan);
  EXPECT_EQ(digests.size(), published.size());
  for (const auto& [name, tensor] : published) {
    const auto found = digests.find(name);
    ASSERT_NE(found, digests.end()) << name;
    std::vector<uint32_t> bits;
    for (const float value : tensor.values) {
      bits.push_back(bf16 ? NearestBf16(value) : BitsOf(value));
    }
    TensorDigest expected;
    AddDigest(bits, &expected);
    EXPECT_EQ(found->second.dtype, bf16 ? "BF16" : "F32") << name;
    EXPECT_EQ(found->second.shape, absl::StrCat("[", absl::StrJoin(tensor.shape, ","), "]"))
        << name;
    EXPECT_EQ(found->second.elements, bits.size()) << name;
    EXPECT_EQ(found->second.sum, expected.sum) << name;
    EXPECT_EQ(found->second.weighted, expected.weighted) << name;
  }
}

TEST_F(HuggingFaceTest, AnIndependentReaderFindsTheSavedValues) {
  for (const ModelCase& one : ModelCases()) {
    for (const bool bf16 : {false, true}) {
      for (const bool sharded : {false, true}) {
        const std::string name = absl::StrCat(one.name, bf16 ? "_bf16" : "", sharded ? "_s" : "");
        std::vector<std::string> flags;
        if (bf16) flags.push_back("--dtype=bf16");
        if (sharded) flags.push_back("--max-shard-size=20kB");
        Export(one, name, flags);
        EXPECT_EQ(fs::exists(Path(name + "/model.safetensors")), !sharded) << name;
        int code = 0;
        const auto digests = RunReader(Path(name), &code);
        ASSERT_EQ(code, 0) << name;
        ExpectDigests(digests, Compile(one), bf16);
      }
    }
  }
}

TEST_F(HuggingFaceTest, ImportGivesBackEveryBit) {
  for (const ModelCase& one : ModelCases()) {
    Export(one, one.name, {"--max-shard-size", "20kB"});
    const std::string imported = one.name + "_imported";
    ASSERT_EQ(Import(one, one.name, imported), kExitOk) << output_;
    for (const auto& [name, values] : ReadState(Path(imported), StateKind::kMaster)) {
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(BitsOf(values[i]), BitsOf(WeightOf(name, static_cast<int64_t>(i)))) << name;
      }
    }
    for (const StateKind kind : {StateKind::kFirstMoment, StateKind::kSecondMoment}) {
      for (const auto& [name, values] : ReadState(Path(imported), kind)) {
        for (const float value : values) ASSERT_EQ(BitsOf(value), 0u) << name;
      }
    }
    const auto report = VerifyCheckpoint(Path(imported));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->defects, testing::IsEmpty());
    EXPECT_EQ(report->step, 0);
  }
}

TEST_F(HuggingFaceTest, ARunStartsFromAnImportedCheckpoint) {
  const ModelCase& one = ModelCaseOf("llama_tp");
  Export(one, "folder");
  ASSERT_EQ(Import(one, "folder", "imported"), kExitOk) << output_;
  const std::string command =
      absl::StrCat("planc/planc run ", WriteJob(one), " --set checkpoint.resume=", Path("imported"),
                   " > ", Path("log"), " 2>&1");
  EXPECT_EQ(std::system(command.c_str()), 0) << ReadText(Path("log"));
  const std::string metrics = ReadText(Path("run_llama_tp/metrics.jsonl"));
  EXPECT_EQ(nlohmann::json::parse(metrics.substr(0, metrics.find('\n')))["step"], 1) << metrics;
}

TEST_F(HuggingFaceTest, WithoutAJobOneIsWrittenThatRuns) {
  for (const std::string name : {"llama", "gpt2", "qwen3"}) {
    Export(ModelCaseOf(name), name);
    const std::string start = name + "_start";
    ASSERT_EQ(Checkpoint({"import", Path(name), Path(start) + "/"}), kExitOk) << output_;
    const std::string job = Path(start + ".yaml");
    const std::string named = std::filesystem::path(job).lexically_normal().string();
    EXPECT_THAT(output_, testing::HasSubstr("planc run " + named));
    const std::string command =
        absl::StrCat("planc/planc run ", job, " --steps=1 --set data.train=[", Path("text.txt"),
                     "] --set data.format=bytes > ", Path("log"), " 2>&1");
    EXPECT_EQ(std::system(command.c_str()), 0) << ReadText(Path("log"));
    EXPECT_THAT(ReadText(Path("log")), testing::HasSubstr("resuming from"));
    // It is not replaced, and a folder that does not fit leaves none.
    EXPECT_EQ(Checkpoint({"import", Path(name), Path(start)}), kExitJobError);
    EXPECT_THAT(output_, testing::HasSubstr("is not replaced"));
    fs::remove(Path(name + "/model.safetensors"));
    EXPECT_EQ(Checkpoint({"import", Path(name), Path("other")}), kExitJobError) << output_;
    EXPECT_FALSE(fs::exists(Path("other.yaml")));
  }
}

TEST_F(HuggingFaceTest, HalfPrecisionIsReadExactly) {
  const ModelCase& one = ModelCaseOf("llama");
  Export(one, "folder");
  const std::string file = Path("folder/model.safetensors");
  RawTensors tensors = ReadRawTensors(file);
  // 1.5, -2^-24 (the smallest denormal), 65504 (the largest), -0.
  const uint16_t halves[] = {0x3e00, 0x8001, 0x7bff, 0x8000};
  const float values[] = {1.5f, -0x1p-24f, 65504.0f, -0.0f};
  RawTensor& norm = tensors["model.norm.weight"];
  norm.dtype = "F16";
  norm.bytes.clear();
  for (int i = 0; i < 32; ++i) {
    norm.bytes.append(reinterpret_cast<const char*>(&halves[i % 4]), sizeof(uint16_t));
  }
  RawTensor& table = tensors["model.embed_tokens.weight"];
  table.dtype = "BF16";
  std::string upper;
  for (size_t i = 0; i < table.bytes.size(); i += 4) upper += table.bytes.substr(i + 2, 2);
  table.bytes = upper;
  WriteRawTensors(file, tensors);
  ASSERT_EQ(Import(one, "folder", "imported"), kExitOk) << output_;
  auto masters = ReadState(Path("imported"), StateKind::kMaster);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(BitsOf(masters["model.norm.weight"][i]), BitsOf(values[i % 4])) << i;
  }
  EXPECT_EQ(BitsOf(masters["model.embed_tokens.weight"][5]),
            BitsOf(WeightOf("model.embed_tokens.weight", 5)) & 0xffff0000u);
}

}  // namespace
}  // namespace planc
