// planc sample: text from a trained model, to see that it learned.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planc/commands.h"
#include "planc/exit_codes.h"
#include "planc/flags.h"
#include "planc/sampling/language_model.h"
#include "planc/sampling/next_token.h"
#include "planc/text.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/launch/launch.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/utf8.h"
#include "schemas/status.h"

namespace planc {
namespace {

struct SampleArguments {
  std::string path;
  std::string prompt;                  // empty: prompt_tokens are given
  std::vector<int32_t> prompt_tokens;  // filled from `prompt` before sampling
  std::string tokenizer;               // empty: bytes, or numbers
  int64_t tokens = 0;
  SamplingOptions sampling;
};

absl::Status ReadNumber(const Flags& flags, const std::string& name, int64_t low, int64_t* value) {
  const std::string text = flags.Get(name);
  if (absl::SimpleAtoi(text, value) && *value >= low) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " `", text, "` is not a whole number >= ", low));
}

// The text or the numbers to go on from.
absl::Status ReadPrompt(const Flags& flags, SampleArguments* arguments) {
  arguments->tokenizer = flags.Get("--tokenizer");
  arguments->prompt = flags.Get("--prompt");
  if (flags.Has("--prompt-tokens") && flags.Has("--prompt")) {
    return absl::InvalidArgumentError("--prompt and --prompt-tokens exclude each other");
  }
  if (!flags.Has("--prompt-tokens")) {
    if (!arguments->prompt.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--prompt=TEXT is missing (or --prompt-tokens=1,2,3)");
  }
  for (const std::string& text : flags.List("--prompt-tokens")) {
    int32_t token = 0;
    if (!absl::SimpleAtoi(text, &token) || token < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--prompt-tokens: `", text, "` is not a whole number >= 0"));
    }
    arguments->prompt_tokens.push_back(token);
  }
  return absl::OkStatus();
}

absl::StatusOr<SampleArguments> ReadArguments(const std::vector<std::string>& args) {
  PLANC_ASSIGN_OR_RETURN(const Flags flags, ParseFlags("sample", args));
  if (flags.positional.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one checkpoint is needed, ", flags.positional.size(), " are named"));
  }
  SampleArguments arguments;
  arguments.path = flags.positional[0];
  PLANC_RETURN_IF_ERROR(ReadPrompt(flags, &arguments));
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
absl::StatusOr<std::string> CheckpointAt(const std::string& path) {
  PLANC_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries, FindCheckpoints(path));
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

// How tokens become text, chosen by the flags and by what the model was trained on.
class TokenText {
 public:
  virtual ~TokenText() = default;
  // Tokens from this number on stand for nothing.
  virtual int64_t limit() const = 0;
  virtual absl::Status Encode(const std::string& text, std::vector<int32_t>* tokens) = 0;
  // What `tokens` say from token `first` on; what was returned before need not be a prefix of it.
  virtual std::string Decode(const std::vector<int32_t>& tokens, size_t first) = 0;
};

class ByteText : public TokenText {
 public:
  int64_t limit() const override { return 256; }
  absl::Status Encode(const std::string& text, std::vector<int32_t>* tokens) override {
    for (const char byte : text) tokens->push_back(static_cast<unsigned char>(byte));
    return absl::OkStatus();
  }
  std::string Decode(const std::vector<int32_t>& tokens, size_t first) override {
    std::string text;
    for (size_t i = first; i < tokens.size(); ++i) text += static_cast<char>(tokens[i]);
    return text;
  }
};

class NumberText : public TokenText {
 public:
  int64_t limit() const override { return INT32_MAX; }
  absl::Status Encode(const std::string& /*text*/, std::vector<int32_t>* /*tokens*/) override {
    return absl::InvalidArgumentError(
        "the model was trained on token numbers, not on bytes: give its tokenizer, which a "
        "checkpoint does not hold, with --tokenizer=FILE, or --prompt-tokens=1,2,3");
  }
  std::string Decode(const std::vector<int32_t>& tokens, size_t first) override {
    std::string text;
    for (size_t i = first; i < tokens.size(); ++i)
      absl::StrAppend(&text, i > 0 ? " " : "", tokens[i]);
    return text;
  }
};

class TokenizerText : public TokenText {
 public:
  explicit TokenizerText(std::unique_ptr<Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  int64_t limit() const override { return tokenizer_->vocab(); }
  absl::Status Encode(const std::string& text, std::vector<int32_t>* tokens) override {
    EncodeCache cache;
    return tokenizer_->Encode(text, &cache, tokens);
  }
  // The text of all of them without that of the first ones: a tokenizer may treat the first token
  // differently. A character whose last bytes are still to come is left out.
  std::string Decode(const std::vector<int32_t>& tokens, size_t first) override {
    const std::string before =
        tokenizer_->Decode({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(first)});
    const std::string all = tokenizer_->Decode(tokens);
    return WholeCharacters(all.size() > before.size() ? all.substr(before.size()) : "");
  }

 private:
  static std::string WholeCharacters(std::string text) {
    size_t last = text.size();
    while (last > 0 && text.size() - last < 4) {
      const unsigned char byte = static_cast<unsigned char>(text[--last]);
      if ((byte & 0xc0) == 0x80) continue;  // not the first byte of a character
      if (byte >= 0xc0 && CharacterBytes(text, last) > text.size() - last) text.resize(last);
      break;
    }
    return text;
  }

  const std::unique_ptr<Tokenizer> tokenizer_;
};

absl::StatusOr<std::unique_ptr<TokenText>> ChooseText(const SampleArguments& arguments,
                                                      const proto::Job& job) {
  const bool bytes = job.data().format() == proto::BYTES;
  if (arguments.tokenizer.empty()) {
    if (bytes && arguments.prompt_tokens.empty()) return std::make_unique<ByteText>();
    return std::make_unique<NumberText>();
  }
  if (bytes) {
    return absl::InvalidArgumentError(
        "the model was trained on bytes: it needs no --tokenizer, and would not know its tokens");
  }
  PLANC_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(arguments.tokenizer));
  if (tokenizer->vocab() > job.model().vocab()) {
    return absl::InvalidArgumentError(absl::StrCat(
        arguments.tokenizer, ": has ", tokenizer->vocab(), " tokens, but model.vocab is ",
        job.model().vocab(), ": the model was trained with another tokenizer"));
  }
  return std::make_unique<TokenizerText>(std::move(tokenizer));
}

absl::Status CheckPrompt(const std::vector<int32_t>& tokens, int64_t vocab, bool bytes) {
  if (tokens.empty()) return absl::InvalidArgumentError("the prompt has no tokens");
  for (const int32_t token : tokens) {
    if (token < vocab) continue;
    return absl::InvalidArgumentError(
        bytes ? absl::StrCat("the prompt has a byte beyond model.vocab ", vocab)
              : absl::StrCat("the prompt has token ", token, ", but model.vocab is ", vocab));
  }
  return absl::OkStatus();
}

// Chooses tokens after those of the prompt, and shows them as soon as they are text.
absl::Status Continue(const SampleArguments& arguments, LanguageModel* model, TokenText* text,
                      std::ostream& out) {
  std::vector<int32_t> tokens = arguments.prompt_tokens;
  const size_t first = tokens.size();
  const int64_t limit = std::min(model->vocab(), text->limit());
  std::string shown;
  while (tokens.size() < first + static_cast<size_t>(arguments.tokens)) {
    PLANC_ASSIGN_OR_RETURN(const float* const logits, model->Logits(tokens));
    // A model may be given more tokens than there are texts for; those stand for nothing.
    tokens.push_back(
        NextToken(logits, limit, arguments.sampling, static_cast<int64_t>(tokens.size())));
    const std::string now = text->Decode(tokens, first);
    if (now.size() <= shown.size()) continue;
    out << Printable(now.substr(shown.size())) << std::flush;
    shown = now;
  }
  out << "\n";
  return absl::OkStatus();
}

absl::Status Sample(SampleArguments arguments, std::ostream& out) {
  PLANC_ASSIGN_OR_RETURN(const std::string checkpoint, CheckpointAt(arguments.path));
  PLANC_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(checkpoint));
  PLANC_ASSIGN_OR_RETURN(const std::unique_ptr<TokenText> text,
                         ChooseText(arguments, manifest.job));
  const bool given_numbers = !arguments.prompt_tokens.empty();
  if (!given_numbers) {
    PLANC_RETURN_IF_ERROR(text->Encode(arguments.prompt, &arguments.prompt_tokens));
  }
  PLANC_RETURN_IF_ERROR(CheckPrompt(arguments.prompt_tokens, manifest.job.model().vocab(),
                                    manifest.job.data().format() == proto::BYTES));
  const int64_t length = static_cast<int64_t>(arguments.prompt_tokens.size()) + arguments.tokens;
  PLANC_ASSIGN_OR_RETURN(const std::unique_ptr<LanguageModel> model,
                         LanguageModel::Load(checkpoint, length, AvailableCores()));
  out << Printable(given_numbers ? text->Decode(arguments.prompt_tokens, 0) : arguments.prompt)
      << std::flush;
  return Continue(arguments, model.get(), text.get(), out);
}

}  // namespace

int RunSample(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<SampleArguments> arguments = ReadArguments(args);
  if (!arguments.ok()) return UsageError("sample", arguments.status(), err);
  const absl::Status status = Sample(*arguments, out);
  if (status.ok()) return kExitOk;
  err << Wrap(absl::StrCat("planc sample: ", std::string(status.message())), 2) << "\n";
  return ExitCodeOf(status);
}

}  // namespace planc
