#include "runtime/data/token_loader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cross_entropy.h"
#include "schemas/counted.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Opens files and checks that they hold at least one window.
absl::StatusOr<std::unique_ptr<TokenStream>> OpenStream(
    const proto::Job& job, const google::protobuf::RepeatedPtrField<std::string>& files,
    const std::string& key, const std::string& directory) {
  const std::vector<std::string> paths(files.begin(), files.end());
  absl::StatusOr<std::unique_ptr<TokenStream>> stream =
      TokenStream::Open(paths, job.data().format(), job.data().token_bytes(), directory);
  if (!stream.ok()) return WithContext(stream.status(), key);
  const int64_t needed = job.batch().sequence() + 1;
  if ((*stream)->tokens() < needed) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": ", paths.empty() ? "no files" : PathIn(directory, paths[0]),
                     paths.size() > 1 ? absl::StrCat(" and ", paths.size() - 1, " more") : "", ": ",
                     Counted((*stream)->tokens(), "token"),
                     ", but one window needs batch.sequence + 1 = ", needed));
  }
  return stream;
}

}  // namespace

TokenLoader::TokenLoader(const Plan& plan, std::unique_ptr<TokenStream> stream, Order order)
    : stream_(std::move(stream)),
      order_(order),
      seed_(plan.job.run().seed()),
      vocab_(plan.job.model().vocab()),
      sequence_(plan.job.batch().sequence()),
      global_(plan.job.batch().global()),
      dp_size_(plan.mesh[Axis::kDpReplicate] * plan.mesh[Axis::kDpShard]),
      windows_(WindowCount(stream_->tokens(), sequence_)),
      position_(FirstPosition(windows_, seed_)) {}

absl::StatusOr<std::unique_ptr<TokenLoader>> TokenLoader::OpenTraining(
    const Plan& plan, const std::string& directory) {
  PLANC_ASSIGN_OR_RETURN(auto stream,
                         OpenStream(plan.job, plan.job.data().train(), "data.train", directory));
  return std::unique_ptr<TokenLoader>(new TokenLoader(plan, std::move(stream), Order::kShuffled));
}

absl::StatusOr<std::unique_ptr<TokenLoader>> TokenLoader::OpenValidation(
    const Plan& plan, const std::string& directory) {
  if (plan.job.data().validation().empty()) return std::unique_ptr<TokenLoader>();
  PLANC_ASSIGN_OR_RETURN(auto stream, OpenStream(plan.job, plan.job.data().validation(),
                                                 "data.validation", directory));
  return std::unique_ptr<TokenLoader>(new TokenLoader(plan, std::move(stream), Order::kSequential));
}

int64_t TokenLoader::WindowOf(int64_t step, int64_t index) const {
  const int64_t place = (step - steps_) * global_ + index;
  if (order_ == Order::kShuffled) return WindowOfSample(position_, position_.samples + place);
  return place < windows_ ? place : kNoWindow;
}

void TokenLoader::KeepFirst(int64_t tokens) {
  stream_->KeepFirst(tokens);
  windows_ = WindowCount(tokens, sequence_);
  position_ = FirstPosition(windows_, seed_);
}

void TokenLoader::GoOnFrom(DataPosition position, int64_t steps) {
  position_ = std::move(position);
  steps_ = steps;
}

absl::Status TokenLoader::Load(const MicrobatchPosition& position, int64_t shift, int32_t none,
                               int32_t* out) const {
  const int64_t micro = position.rows / sequence_;
  if (position.rows % sequence_ != 0) {
    return absl::InternalError(absl::StrCat(position.rows, " rows are not whole sequences of ",
                                            Counted(sequence_, "token")));
  }
  for (int64_t i = 0; i < micro; ++i) {
    const int64_t index =
        GlobalSequenceIndex(position.microbatch, position.dp_index, dp_size_, micro, i);
    const int64_t window = WindowOf(position.step, index);
    if (window == kNoWindow) {
      std::fill_n(out + i * sequence_, sequence_, none);
      continue;
    }
    PLANC_RETURN_IF_ERROR(
        stream_->ReadChecked(window * sequence_ + shift, sequence_, vocab_, out + i * sequence_));
  }
  return absl::OkStatus();
}

absl::Status TokenLoader::LoadTokens(const MicrobatchPosition& position, int32_t* tokens) {
  return Load(position, 0, 0, tokens);
}

absl::Status TokenLoader::LoadTargets(const MicrobatchPosition& position, int32_t* targets) {
  return Load(position, 1, host::kIgnoredTarget, targets);
}

DataFindings InspectData(const proto::Job& job, const std::string& directory) {
  DataFindings findings;
  std::vector<absl::Status> unopened;
  const auto inspect = [&](const google::protobuf::RepeatedPtrField<std::string>& files,
                           const std::string& key, DataAmount* amount) {
    const auto stream = OpenStream(job, files, key, directory);
    if (!stream.ok()) {
      findings.errors.emplace_back(stream.status().message());
      unopened.push_back(stream.status());
      return;
    }
    const int64_t tokens = (*stream)->tokens();
    *amount = {files.size(), tokens, WindowCount(tokens, job.batch().sequence())};
    InspectTokens(**stream, job.data().format(), job.model().vocab(), key, &findings);
  };
  inspect(job.data().train(), "data.train", &findings.train);
  if (findings.train.windows > 0 && findings.train.windows < job.batch().global()) {
    findings.warnings.push_back(
        absl::StrCat("data.train: ", Counted(findings.train.windows, "window"),
                     " of batch.sequence ", job.batch().sequence(), ", fewer than batch.global ",
                     job.batch().global(), ": every step uses some of them more than once"));
  }
  if (!job.data().validation().empty()) {
    inspect(job.data().validation(), "data.validation", &findings.validation);
  }
  // What is wrong with contents outweighs a file that cannot be opened.
  if (!unopened.empty() && unopened.size() == findings.errors.size()) {
    findings.fault = FaultOf(JoinedErrors(unopened));
  }
  return findings;
}

}  // namespace planc
