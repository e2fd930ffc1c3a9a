// Folders that do not fit the job, damaged ones, and full disks.
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planc/commands.h"
#include "runtime/checkpoint/file_system.h"
#include "runtime/checkpoint/huggingface/export.h"
#include "runtime/checkpoint/huggingface/tensor_file_writer.h"
#include "tests/huggingface/folder_files.h"
#include "tests/huggingface/huggingface_fixture.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(HuggingFaceTest, HarmlessTensorsAreNamedAndLeftOut) {
  const ModelCase& gpt2 = ModelCaseOf("gpt2");
  Export(gpt2, "gpt2");
  RawTensors plain;  // as published: no prefix, and masks
  for (const auto& [name, tensor] : ReadRawTensors(Path("gpt2/model.safetensors"))) {
    plain[absl::StrReplaceAll(name, {{"transformer.", ""}})] = tensor;
  }
  plain["h.0.attn.bias"] = {"U8", {1, 1, 2, 2}, std::string("\1\0\1\1", 4)};
  plain["lm_head.weight"] = plain["wte.weight"];
  WriteRawTensors(Path("gpt2/model.safetensors"), plain);
  ASSERT_EQ(Import(gpt2, "gpt2", "gpt2_imported"), kExitOk) << output_;
  EXPECT_THAT(output_, HasSubstr("left out: transformer.h.0.attn.bias: the causal mask"));
  EXPECT_THAT(output_, HasSubstr("lm_head.weight: the same values as transformer.wte.weight"));
  for (const auto& [name, values] : ReadState(Path("gpt2_imported"), StateKind::kMaster)) {
    EXPECT_EQ(values[3], WeightOf(name, 3)) << name;
  }
  plain["lm_head.weight"].bytes[0] ^= 1;
  WriteRawTensors(Path("gpt2/model.safetensors"), plain);
  EXPECT_EQ(Import(gpt2, "gpt2", "other"), kExitJobError);
  EXPECT_THAT(output_, HasSubstr("lm_head.weight differs from the embedding"));
}

TEST_F(HuggingFaceTest, EveryTensorThatDoesNotFitIsNamed) {
  const ModelCase& one = ModelCaseOf("llama");
  Export(one, "folder");
  RawTensors tensors = ReadRawTensors(Path("folder/model.safetensors"));
  tensors.erase("model.layers.1.mlp.up_proj.weight");
  tensors["model.norm.weight"].shape = {4, 8};
  tensors["model.layers.0.self_attn.q_proj.bias"] = {"F32", {1}, std::string(4, '\0')};
  tensors["model.layers.0.input_layernorm.weight"].dtype = "I32";
  WriteRawTensors(Path("folder/model.safetensors"), tensors);
  EXPECT_EQ(Import(one, "folder", "imported"), kExitJobError);
  EXPECT_THAT(output_, HasSubstr("model.layers.1.mlp.up_proj.weight [48, 32] is missing"));
  EXPECT_THAT(output_, HasSubstr("model.norm.weight is [4, 8], but [32] in the job's model"));
  EXPECT_THAT(output_, HasSubstr("q_proj.bias [1] is not in the job's model"));
  EXPECT_THAT(output_, HasSubstr("model.layers.0.input_layernorm.weight is of type I32"));
  EXPECT_FALSE(fs::exists(Path("imported")));
}

TEST_F(HuggingFaceTest, ContradictingSettingsAreNamedWithBothValues) {
  const ModelCase& one = ModelCaseOf("llama");
  Export(one, "folder");
  const nlohmann::json original = ReadJsonFile(Path("folder/config.json"));
  const auto import = [&](const nlohmann::json& changes, int expected) {
    nlohmann::json config = original;
    config.merge_patch(changes);
    WriteText(Path("folder/config.json"), config.dump());
    fs::remove_all(Path("imported"));
    EXPECT_EQ(Import(one, "folder", "imported"), expected) << output_;
    return output_;
  };
  EXPECT_THAT(import({{"rope_theta", 10000.0}}, kExitJobError),
              HasSubstr("rope_theta is 10000.0, but 500000.0 in the job's model"));
  EXPECT_THAT(import({{"rope_theta", nullptr}}, kExitJobError),
              HasSubstr("rope_theta is 10000.0 (because the key is missing), but 500000.0"));
  EXPECT_THAT(import({{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}}}}, kExitJobError),
              HasSubstr("but null in the job's model"));
  EXPECT_THAT(import({{"hidden_act", "gelu"}}, kExitJobError),
              HasSubstr("hidden_act is \"gelu\", but \"silu\""));
  EXPECT_THAT(import({{"attention_bias", true}, {"num_hidden_layers", 3}}, kExitJobError),
              testing::AllOf(HasSubstr("attention_bias is true"),
                             HasSubstr("num_hidden_layers is 3, but 2")));
  EXPECT_THAT(import({{"layer_types", {"full_attention", "sliding_attention"}}}, kExitJobError),
              HasSubstr("sliding_attention"));
  EXPECT_THAT(import({{"model_type", "qwen2"}}, kExitJobError),
              testing::AllOf(HasSubstr("model_type is \"qwen2\", but \"llama\""),
                             Not(HasSubstr("is missing"))));
  // Other spellings of the same model.
  import({{"rope_theta", 500000}, {"head_dim", nullptr}, { "bos_token_id", 1 }}, kExitOk);
  import({{"rope_theta", nullptr},
          {"rope_scaling", nullptr},
          { "rope_parameters",
            { {"rope_theta", 500000.0},
              { "rope_type",
                "default" } } }},
         kExitOk);
}

TEST_F(HuggingFaceTest, DamagedFoldersAreRefused) {
  const ModelCase& one = ModelCaseOf("llama");
  Export(one, "whole", {"--max-shard-size=40kB"});
  const std::string first = "/model-00001-of-00004.safetensors";
  ASSERT_TRUE(fs::exists(Path("whole") + first));
  const auto damaged = [&](const std::function<void()>& damage, int expected) {
    fs::remove_all(Path("folder"));
    fs::copy(Path("whole"), Path("folder"));
    damage();
    EXPECT_EQ(Import(one, "folder", "imported"), expected) << output_;
    EXPECT_FALSE(fs::exists(Path("imported")));
    EXPECT_FALSE(fs::exists(Path("imported.tmp")));
    return output_;
  };
  const std::string file = Path("folder") + first;
  EXPECT_THAT(damaged([&] { fs::resize_file(file, fs::file_size(file) - 1); }, kExitTrainingFault),
              HasSubstr("model-00001-of-00004.safetensors"));
  EXPECT_THAT(damaged([&] { fs::resize_file(file, 5); }, kExitTrainingFault),
              HasSubstr("no safetensors header"));
  EXPECT_THAT(damaged([&] { fs::remove(file); }, kExitTrainingFault), HasSubstr("00001-of-00004"));
  EXPECT_THAT(damaged([&] { WriteText(Path("folder/config.json"), "{"); }, kExitTrainingFault),
              HasSubstr("config.json: is not a JSON object"));
  EXPECT_THAT(damaged([&] { fs::remove(Path("folder/config.json")); }, kExitJobError),
              HasSubstr("is not a Hugging Face folder"));
  const std::string index = Path("folder/model.safetensors.index.json");
  EXPECT_THAT(damaged([&] { fs::remove(index); }, kExitJobError), HasSubstr("has neither"));
  EXPECT_THAT(damaged([&] { fs::copy(file, Path("folder/model.safetensors")); }, kExitJobError),
              HasSubstr("has both"));
  nlohmann::json map = ReadJsonFile(Path("whole/model.safetensors.index.json"));
  map["weight_map"]["lm_head.weight"] = "../elsewhere.safetensors";
  EXPECT_THAT(damaged([&] { WriteText(index, map.dump()); }, kExitTrainingFault),
              HasSubstr("has no file name"));
  const auto put_nan = [&] {
    RawTensors tensors = ReadRawTensors(file);
    tensors.begin()->second.bytes.replace(8, 4, std::string("\0\0\xc0\x7f", 4));
    WriteRawTensors(file, tensors);
  };
  EXPECT_THAT(damaged(put_nan, kExitTrainingFault), HasSubstr("element 2 is not a finite number"));
}

TEST_F(HuggingFaceTest, NothingIsOverwritten) {
  const ModelCase& one = ModelCaseOf("llama");
  const std::string checkpoint = Save(one);
  fs::create_directories(Path("empty"));
  EXPECT_EQ(Checkpoint({"export", checkpoint, Path("empty/")}), kExitOk) << output_;
  EXPECT_EQ(Checkpoint({"export", checkpoint, Path("empty")}), kExitJobError);
  EXPECT_THAT(output_, HasSubstr("nothing is overwritten"));
  EXPECT_EQ(Import(one, "empty", "empty"), kExitJobError);
  fs::create_directories(Path("left.tmp"));
  EXPECT_EQ(Checkpoint({"export", checkpoint, Path("left")}), kExitJobError);
  EXPECT_THAT(output_, HasSubstr("left.tmp"));
  EXPECT_FALSE(fs::exists(Path("left")));
}

// A disk that is full after some bytes.
class FullDisk : public HostFileSystem {
 public:
  explicit FullDisk(int64_t room) : room_(room) {}
  int64_t Write(int file, const void* data, int64_t bytes, int64_t offset) const override {
    if (bytes > room_) return -ENOSPC;
    room_ -= bytes;
    return HostFileSystem::Write(file, data, bytes, offset);
  }

 private:
  mutable int64_t room_;
};

TEST_F(HuggingFaceTest, AFullDiskLeavesNothing) {
  const std::string checkpoint = Save(ModelCaseOf("llama"));
  const absl::Status status =
      ExportFolder(checkpoint, Path("folder"), {}, FullDisk(50000)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("model.safetensors"), HasSubstr("No space left"),
                             HasSubstr("tensor ")));
  EXPECT_FALSE(fs::exists(Path("folder")));
  EXPECT_FALSE(fs::exists(Path("folder.tmp")));
}

TEST_F(HuggingFaceTest, ADamagedCheckpointIsNotExported) {
  const std::string checkpoint = Save(ModelCaseOf("llama"));
  const std::string file = checkpoint + "/rank-00000.safetensors";
  std::string bytes = ReadText(file);
  bytes[bytes.size() - 5] ^= 4;
  for (size_t i = bytes.size() / 2; i < bytes.size(); i += 400) bytes[i] ^= 1;
  WriteText(file, bytes);
  EXPECT_EQ(Checkpoint({"export", checkpoint, Path("folder")}), kExitTrainingFault);
  EXPECT_THAT(output_, HasSubstr("it is damaged"));
  EXPECT_FALSE(fs::exists(Path("folder")));
}

TEST_F(HuggingFaceTest, AValueThatBf16WouldMakeInfiniteIsNotExported) {
  const std::vector<TensorName> tensors = {{"w", {2}}};
  const HostFileSystem files;
  const float values[] = {1, std::numeric_limits<float>::max()};
  fs::create_directories(Path(""));
  for (const ExportType type : {ExportType::kF32, ExportType::kBf16}) {
    auto writer = TensorFileWriter::Create(files, Path("large"), tensors, type);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const absl::Status written = writer->Append(values, 2, "tensor w");
    if (type == ExportType::kF32) {
      EXPECT_TRUE(written.ok()) << written;
      continue;
    }
    EXPECT_EQ(written.code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(written.message(),
              "tensor w: 3.40282e+38 is beyond the numbers of bf16; export it as f32");
  }
}

TEST_F(HuggingFaceTest, WrongUseIsReported) {
  EXPECT_EQ(Checkpoint({"export", Path("none"), Path("folder")}), kExitJobError);
  EXPECT_THAT(output_, HasSubstr("no complete checkpoint"));
  EXPECT_EQ(Checkpoint({"export", "a"}), kExitJobError);
  EXPECT_THAT(output_, HasSubstr("export needs two paths, 1 are named"));
  EXPECT_EQ(Checkpoint({"export", "a", "b", "--dtype=f16"}), kExitJobError);
  EXPECT_THAT(output_, HasSubstr("--dtype `f16` is not supported"));
  EXPECT_EQ(Checkpoint({"export", "a", "b", "--max-shard-size=0"}), kExitJobError);
  EXPECT_EQ(Checkpoint({"export", "a", "b", "--max-shard-size=much"}), kExitJobError);
  EXPECT_EQ(Checkpoint({"import", "a", "b"}), kExitJobError);
  EXPECT_THAT(output_, HasSubstr("a/config.json: does not exist"));
  EXPECT_EQ(Checkpoint({"import", "a", "b", "--dtype=f32"}), kExitJobError);
  EXPECT_THAT(output_, HasSubstr("import takes no --dtype"));
}

}  // namespace
}  // namespace planc
