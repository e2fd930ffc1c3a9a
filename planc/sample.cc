// planc sample: text from a trained model, to see that it learned.
#include <cctype>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/sampling/language_model.h"
#include "planc/sampling/next_token.h"
#include "planc/text.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/launch/launch.h"
#include "schemas/status.h"

namespace planc {
namespace {

struct SampleArguments {
  std::string path;
  std::string prompt;
  int64_t tokens = 0;
  SamplingOptions sampling;
};

absl::Status ReadNumber(const Flags& flags, const std::string& name, int64_t low, int64_t* value) {
  const std::string text = flags.Get(name);
  if (absl::SimpleAtoi(text, value) && *value >= low) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " `", text, "` is not a whole number >= ", low));
}

absl::StatusOr<SampleArguments> ReadArguments(const std::vector<std::string>& args) {
  PLANC_ASSIGN_OR_RETURN(const Flags flags, ParseFlags("sample", args));
  if (flags.positional.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one checkpoint is needed, ", flags.positional.size(), " are named"));
  }
  SampleArguments arguments;
  arguments.path = flags.positional[0];
  arguments.prompt = flags.Get("--prompt");
  if (arguments.prompt.empty()) return absl::InvalidArgumentError("--prompt=TEXT is missing");
  int64_t seed = 0;
  PLANC_RETURN_IF_ERROR(ReadNumber(flags, "--tokens", 1, &arguments.tokens));
  PLANC_RETURN_IF_ERROR(ReadNumber(flags, "--top-k", 0, &arguments.sampling.top_k));
  PLANC_RETURN_IF_ERROR(ReadNumber(flags, "--seed", 0, &seed));
  arguments.sampling.seed = static_cast<uint64_t>(seed);
  const std::string temperature = flags.Get("--temperature");
  if (!absl::SimpleAtod(temperature, &arguments.sampling.temperature) ||
      !(arguments.sampling.temperature >= 0) || arguments.sampling.temperature > 1e6) {
    return absl::InvalidArgumentError(
        absl::StrCat("--temperature `", temperature, "` is not a number >= 0"));
  }
  return arguments;
}

// `path` itself, or the newest checkpoint in it.
std::string CheckpointAt(const std::string& path) {
  const std::vector<CheckpointEntry> entries = ListCheckpoints(path);
  return entries.empty() ? path : entries.back().path;
}

// Bytes as text; control characters are spelled out so that they cannot steer a terminal.
std::string Printable(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    const unsigned char code = static_cast<unsigned char>(byte);
    const bool control = (code < 0x20 && byte != '\n' && byte != '\t') || code == 0x7f;
    text += control ? absl::StrFormat("\\x%02x", code) : std::string(1, byte);
  }
  return text;
}

absl::Status CheckBytes(const std::string& checkpoint, const std::string& prompt) {
  PLANC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(checkpoint));
  if (manifest.job.data().format() != proto::BYTES) {
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint,
                     ": was trained on token numbers, not on bytes; turning them into text needs "
                     "the tokenizer, which a checkpoint does not hold"));
  }
  for (const char byte : prompt) {
    if (static_cast<unsigned char>(byte) < manifest.job.model().vocab()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the prompt has a byte beyond model.vocab ", manifest.job.model().vocab()));
  }
  return absl::OkStatus();
}

absl::Status Sample(const SampleArguments& arguments, std::ostream& out) {
  const std::string checkpoint = CheckpointAt(arguments.path);
  PLANC_RETURN_IF_ERROR(CheckBytes(checkpoint, arguments.prompt));
  const int64_t length = static_cast<int64_t>(arguments.prompt.size()) + arguments.tokens;
  PLANC_ASSIGN_OR_RETURN(const std::unique_ptr<LanguageModel> model,
                         LanguageModel::Load(checkpoint, length, AvailableCores()));
  std::vector<int32_t> tokens;
  for (const char byte : arguments.prompt) tokens.push_back(static_cast<unsigned char>(byte));
  out << Printable(arguments.prompt) << std::flush;
  while (static_cast<int64_t>(tokens.size()) < length) {
    PLANC_ASSIGN_OR_RETURN(const float* const logits, model->Logits(tokens));
    // A model may be given more tokens than there are bytes; those stand for nothing.
    tokens.push_back(NextToken(logits, std::min<int64_t>(model->vocab(), 256), arguments.sampling,
                               static_cast<int64_t>(tokens.size())));
    out << Printable(std::string(1, static_cast<char>(tokens.back()))) << std::flush;
  }
  out << "\n";
  return absl::OkStatus();
}

}  // namespace

int RunSample(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<SampleArguments> arguments = ReadArguments(args);
  if (!arguments.ok()) return UsageError("sample", arguments.status(), err);
  const absl::Status status = Sample(*arguments, out);
  if (status.ok()) return kExitOk;
  err << Wrap(absl::StrCat("planc sample: ", std::string(status.message())), 2) << "\n";
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kInvalidArgument:
      return kExitJobError;
    case absl::StatusCode::kDataLoss:
      return kExitTrainingFault;
    default:
      return kExitInternal;
  }
}

}  // namespace planc
