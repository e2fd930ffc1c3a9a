#include "runtime/training_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/checkpoint/data_changes.h"
#include "runtime/checkpoint/json_fields.h"
#include "runtime/checkpoint/run_record.h"
#include "runtime/data/mapped_file.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

bool IsKept(const DataComparison& comparison) {
  return comparison.change == DataChange::kSame || comparison.change == DataChange::kAppended;
}

int64_t TokensOf(const std::vector<FileIdentity>& files) {
  int64_t tokens = 0;
  for (const FileIdentity& file : files) tokens += file.tokens;
  return tokens;
}

absl::Status OtherFiles(const char* key, const DataComparison& comparison) {
  return absl::DataLossError(absl::StrCat(
      key, ": the run began with ", comparison.then, ", and this rank finds ", comparison.now,
      ": all ranks read the same data from the start of a run to its end"));
}

void NoteChange(const char* key, const DataComparison& comparison,
                std::vector<std::string>* notices) {
  if (comparison.change != DataChange::kReplaced && comparison.change != DataChange::kAppended) {
    return;
  }
  notices->push_back(absl::StrCat(key, " is ", comparison.then, " in the checkpoint, and ",
                                  comparison.now, " now"));
}

}  // namespace

absl::StatusOr<TrainingData> TrainingData::Open(const Plan& plan, const std::string& directory) {
  TrainingData data(plan, directory);
  PLANC_ASSIGN_OR_RETURN(data.training_, TokenLoader::OpenTraining(plan, directory));
  PLANC_ASSIGN_OR_RETURN(data.validation_, TokenLoader::OpenValidation(plan, directory));
  const proto::Data& files = plan.job.data();
  data.identity_.train = IdentifyFiles(data.training_->stream(), files.train());
  if (data.validation_ != nullptr) {
    data.identity_.validation = IdentifyFiles(data.validation_->stream(), files.validation());
  }
  data.begun_ = FirstPosition(data.training_->windows(), plan.job.run().seed());
  return data;
}

absl::Status TrainingData::CheckThatOf(const RunStart& run) {
  if (run.data.empty() || HexText(ChecksumOf(identity_)) == run.data) return absl::OkStatus();
  const absl::StatusOr<RunRecord> record =
      ReadRunRecord(PathIn(directory_, plan_->job.run().directory()));
  if (!record.ok() || !record->data.has_value() || HexText(ChecksumOf(*record->data)) != run.data) {
    return absl::DataLossError(
        "this rank finds other data than the run began with: all ranks read the same files, from "
        "the start of a run to its end");
  }
  const DataIdentity& then = *record->data;
  const proto::Data& files = plan_->job.data();
  const DataComparison train = CompareFiles(then.train, training_->stream(), files.train());
  if (!IsKept(train)) return OtherFiles("data.train", train);
  training_->KeepFirst(TokensOf(then.train));
  if (validation_ != nullptr) {
    const DataComparison validation =
        CompareFiles(then.validation, validation_->stream(), files.validation());
    if (!IsKept(validation)) return OtherFiles("data.validation", validation);
    validation_->KeepFirst(TokensOf(then.validation));
  }
  identity_ = then;
  begun_ = FirstPosition(training_->windows(), plan_->job.run().seed());
  return absl::OkStatus();
}

absl::Status TrainingData::GoOn(const Manifest* from, std::vector<std::string>* notices) {
  if (from == nullptr) return absl::OkStatus();
  const proto::Data& files = plan_->job.data();
  DataComparison train;
  DataComparison validation;
  if (from->data.has_value()) {
    const DataIdentity& then = from->data->identity;
    train = CompareFiles(then.train, training_->stream(), files.train());
    if (validation_ != nullptr && !then.validation.empty()) {
      validation = CompareFiles(then.validation, validation_->stream(), files.validation());
    }
  }
  NoteChange("data.train", train, notices);
  NoteChange("data.validation", validation, notices);
  PLANC_ASSIGN_OR_RETURN(begun_, PositionAfter(*from, plan_->job, train.change,
                                               training_->stream().tokens(), notices));
  begun_step_ = from->step;
  training_->GoOnFrom(begun_, begun_step_);
  return absl::OkStatus();
}

DataPosition TrainingData::After(int64_t steps) const {
  const proto::Batch& batch = plan_->job.batch();
  return Advanced(begun_, (steps - begun_step_) * batch.global(), batch.sequence());
}

double TrainingData::EpochsAfter(int64_t steps) const {
  const DataPosition position = After(steps);
  return EpochsBefore(position, position.samples);
}

int64_t TrainingData::ValidationWindows() const {
  if (validation_ == nullptr) return 0;
  const proto::Job& job = plan_->job;
  return std::min(job.run().eval_batches() * job.batch().global(), validation_->windows());
}

std::vector<std::string> TrainingData::Amounts(int64_t end) const {
  const proto::Batch& batch = plan_->job.batch();
  std::vector<std::string> lines = {absl::StrFormat(
      "data.train: %s, %s of %d in an epoch; up to step %d, epochs %.2f to %.2f",
      Counted(training_->stream().tokens(), "token"), Counted(training_->windows(), "window"),
      batch.sequence(), std::max(end, begun_step_), EpochsAfter(begun_step_),
      EpochsAfter(std::max(end, begun_step_)))};
  if (validation_ == nullptr) return lines;
  const int64_t asked = plan_->job.run().eval_batches() * batch.global();
  const int64_t used = ValidationWindows();
  lines.push_back(absl::StrCat(
      "data.validation: ", Counted(validation_->windows(), "window"), "; a validation uses ", used,
      " of them once", used < asked ? absl::StrCat(", not the ", asked, " that are asked for") : "",
      " (run.eval_batches ", plan_->job.run().eval_batches(), " x batch.global ", batch.global(),
      ")"));
  return lines;
}

}  // namespace planc
