// planc tokenize: token files from text.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/text.h"
#include "runtime/launch/launch.h"
#include "runtime/tokenizer/tokenize_files.h"
#include "runtime/tokenizer/tokenizer.h"
#include "schemas/status.h"

namespace planc {
namespace {

struct TokenizeArguments {
  TokenizeOptions options;
  std::string tokenizer;
  bool append_end = false;
  std::string end;  // how the token is written; empty: the tokenizer's own
};

absl::StatusOr<TokenizeArguments> ReadArguments(const std::vector<std::string>& args) {
  PLANC_ASSIGN_OR_RETURN(const Flags flags, ParseFlags("tokenize", args));
  TokenizeArguments arguments;
  TokenizeOptions& options = arguments.options;
  options.inputs = flags.positional;
  options.output = flags.Get("--output");
  arguments.tokenizer = flags.Get("--tokenizer");
  if (options.inputs.empty()) return absl::InvalidArgumentError("no input is named");
  if (arguments.tokenizer.empty()) return absl::InvalidArgumentError("--tokenizer=FILE is missing");
  if (options.output.empty()) return absl::InvalidArgumentError("-o OUT is missing");
  options.megatron = flags.Get("--format") == "megatron";
  // Whoever names one file of the pair means the pair.
  if (options.megatron && absl::EndsWith(options.output, ".bin")) {
    options.output = std::string(absl::StripSuffix(options.output, ".bin"));
  }
  options.all_json = flags.Has("--json-key");
  options.json_key = flags.Get("--json-key");
  arguments.append_end = flags.Has("--append-eod") || flags.Has("--eod");
  arguments.end = flags.Get("--eod");
  const std::string workers = flags.Get("--workers");
  options.workers = AvailableCores();
  if (flags.Has("--workers") && (!absl::SimpleAtoi(workers, &options.workers) ||
                                 options.workers < 1 || options.workers > 1024)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--workers `", workers, "` is not a number from 1 to 1024"));
  }
  return arguments;
}

absl::StatusOr<int32_t> EndToken(const Tokenizer& tokenizer, const TokenizeArguments& arguments) {
  const auto token =
      arguments.end.empty() ? tokenizer.EndOfDocument() : tokenizer.FindToken(arguments.end);
  if (token.has_value()) return *token;
  if (!arguments.end.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.tokenizer, ": has no token `", arguments.end, "` (--eod)"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      arguments.tokenizer, ": does not say which token ends a document; name it with --eod=TOKEN"));
}

// A line that is written over and over on a terminal.
class ProgressLine {
 public:
  explicit ProgressLine(std::ostream& err) : err_(err) {}
  ~ProgressLine() {
    if (shown_) err_ << "\r\x1b[K" << std::flush;
  }
  void Show(const TokenizeProgress& progress) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const double done = static_cast<double>(progress.bytes_done);
    const double all = static_cast<double>(std::max<int64_t>(1, progress.bytes));
    err_ << absl::StrFormat("\r\x1b[K%3.0f%%  %s tokens  %.1f MB/s  %.0f s left", 100 * done / all,
                            GroupedText(progress.tokens), done / 1e6 / std::max(seconds, 1e-3),
                            seconds * (all - done) / std::max(done, 1.0))
         << std::flush;
    shown_ = true;
  }

 private:
  std::ostream& err_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

std::string SummaryText(const TokenizeSummary& summary, const TokenizeOptions& options,
                        int64_t vocab) {
  const int64_t width = TokenBytes(summary.code);
  const std::string type =
      summary.code == TokenCode::kI32 ? "int32" : absl::StrCat("uint", width * 8);
  std::string text = absl::StrCat(options.output, ": ", GroupedText(summary.tokens),
                                  summary.tokens == 1 ? " token" : " tokens", " (", type, ") of ",
                                  GroupedText(summary.documents),
                                  summary.documents == 1 ? " document" : " documents");
  if (summary.empty > 0) {
    absl::StrAppend(&text, "; left out: ", GroupedText(summary.empty),
                    summary.empty == 1 ? " empty one" : " empty ones");
  }
  absl::StrAppend(&text, "\nin the job:\n  model: {vocab: ", vocab,
                  "}  # or more\n  data: {train: [", options.output,
                  "], format: ", options.megatron ? "megatron" : "tokens");
  if (!options.megatron) absl::StrAppend(&text, ", token_bytes: ", width);
  return text + "}\n";
}

absl::Status Tokenize(TokenizeArguments arguments, std::ostream& out, std::ostream& err) {
  PLANC_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                         LoadTokenizer(arguments.tokenizer));
  if (arguments.append_end) {
    PLANC_ASSIGN_OR_RETURN(arguments.options.end_of_document, EndToken(*tokenizer, arguments));
  }
  absl::StatusOr<TokenizeSummary> summary = TokenizeSummary();
  {
    ProgressLine line(err);
    if (IsTerminal(err)) {
      arguments.options.progress = [&line](const TokenizeProgress& now) { line.Show(now); };
    }
    summary = TokenizeFiles(*tokenizer, arguments.options);
  }
  if (!summary.ok()) return summary.status();
  out << SummaryText(*summary, arguments.options, tokenizer->vocab());
  return absl::OkStatus();
}

}  // namespace

int RunTokenize(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  absl::StatusOr<TokenizeArguments> arguments = ReadArguments(args);
  if (!arguments.ok()) return UsageError("tokenize", arguments.status(), err);
  const absl::Status status = Tokenize(*std::move(arguments), out, err);
  if (status.ok()) return kExitOk;
  err << Wrap(absl::StrCat("planc tokenize: ", std::string(status.message())), 2) << "\n";
  return absl::IsInvalidArgument(status) ? kExitJobError : kExitInternal;
}

}  // namespace planc
