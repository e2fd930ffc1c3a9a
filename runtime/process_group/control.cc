#include "runtime/process_group/control.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "schemas/counted.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

// Error messages name this many ranks.
constexpr size_t kRanksNamed = 16;

std::string RankList(const std::vector<int64_t>& ranks) {
  std::vector<int64_t> named = ranks;
  if (named.size() > kRanksNamed) named.resize(kRanksNamed);
  std::string text =
      absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(named, ", "));
  if (ranks.size() > kRanksNamed)
    absl::StrAppend(&text, ", ... (", Counted(ranks.size(), "rank"), ")");
  return text;
}

}  // namespace

Control::Control(std::shared_ptr<KeyValueStore> store, std::string prefix, int64_t rank,
                 int64_t world_size, absl::Duration timeout)
    : store_(std::move(store)),
      prefix_(std::move(prefix)),
      rank_(rank),
      world_size_(world_size),
      timeout_(timeout) {}

std::string Control::Key(const std::string& tag, const std::string& part) const {
  return absl::StrCat(prefix_, "/control/", tag, "/", part);
}

int64_t Control::NextUse(const std::string& tag) { return uses_[tag]++; }

std::string Control::Excuse() {
  if (storage_ == nullptr) return "";
  const std::string foreground = storage_->Told(StorageUse::kForeground, &storage_reader_);
  if (!background_) return foreground;
  const std::string both = storage_->Told(StorageUse::kBackground, &storage_reader_);
  return both.empty() ? foreground : both;
}

absl::StatusOr<std::string> Control::AwaitValue(const std::string& key, absl::Duration timeout,
                                                std::string* told) {
  absl::StatusOr<std::string> got = store_->Get(key, timeout);
  const absl::Time last = absl::Now() + StorageWatch::kLongest;
  while (absl::Now() < last &&
         (absl::IsDeadlineExceeded(got.status()) || absl::IsNotFound(got.status()))) {
    const std::string more = Excuse();
    if (more.empty()) break;
    *told = absl::StrCat("; storage: ", more);
    got = store_->Get(key, timeout_);
  }
  return got;
}

absl::StatusOr<std::vector<std::string>> Control::Gather(const std::string& tag,
                                                         const std::string& value) {
  const int64_t use = NextUse("gather/" + tag);
  std::vector<std::string> values;
  if (rank_ != 0) {
    PLANC_RETURN_IF_ERROR(store_->Set(Key(tag, absl::StrCat(use, "/", rank_)), value, 1));
    return values;
  }
  values.push_back(value);
  std::vector<int64_t> missing;
  std::string told;  // of storage
  const absl::Time deadline = absl::Now() + timeout_;
  for (int64_t rank = 1; rank < world_size_; ++rank) {
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    absl::StatusOr<std::string> got =
        AwaitValue(Key(tag, absl::StrCat(use, "/", rank)), left, &told);
    if (absl::IsDeadlineExceeded(got.status()) || absl::IsNotFound(got.status())) {
      missing.push_back(rank);
    } else if (!got.ok()) {
      return got.status();
    }
    values.push_back(got.ok() ? *std::move(got) : "");
  }
  if (missing.empty()) return values;
  return absl::DeadlineExceededError(absl::StrCat(RankList(missing), " did not reach \"", tag,
                                                  "\" within ", absl::FormatDuration(timeout_),
                                                  told));
}

absl::StatusOr<std::string> Control::Broadcast(const std::string& tag, const std::string& value) {
  const std::string key = Key(tag, absl::StrCat("root/", NextUse("broadcast/" + tag)));
  if (rank_ == 0) {
    if (world_size_ == 1) return value;
    PLANC_RETURN_IF_ERROR(store_->Set(key, value, world_size_ - 1));
    return value;
  }
  // Rank 0 may itself wait `timeout_` for the others before it answers.
  std::string told;
  absl::StatusOr<std::string> got = AwaitValue(key, 2 * timeout_, &told);
  if (!got.ok())
    return WithContext(got.status(), absl::StrCat("waiting for rank 0 at \"", tag, "\"", told));
  return got;
}

absl::Status Control::Barrier(const std::string& tag) {
  const absl::StatusOr<std::vector<std::string>> arrived = Gather(tag, "");
  if (rank_ != 0 && !arrived.ok()) return arrived.status();
  PLANC_ASSIGN_OR_RETURN(const std::string verdict, Broadcast(tag, EncodeStatus(arrived.status())));
  return DecodeStatus(verdict);
}

absl::Status Control::AgreeOn(const std::string& what, const std::string& value) {
  const absl::StatusOr<std::vector<std::string>> values = Gather(what, value);
  if (rank_ != 0 && !values.ok()) return values.status();
  absl::Status agreed = values.status();
  if (values.ok() && rank_ == 0) {
    std::vector<int64_t> different;
    for (int64_t rank = 1; rank < world_size_; ++rank) {
      if ((*values)[rank] != value) different.push_back(rank);
    }
    if (!different.empty()) {
      agreed = absl::FailedPreconditionError(
          absl::StrCat("ranks disagree on the ", what, ": rank 0 has ", value, ", ",
                       RankList(different), different.size() == 1 ? " has " : " have ",
                       (*values)[different.front()], different.size() == 1 ? "" : ", ..."));
    }
  }
  PLANC_ASSIGN_OR_RETURN(const std::string verdict, Broadcast(what, EncodeStatus(agreed)));
  return DecodeStatus(verdict);
}

absl::Status Control::TakeStopStep(const std::string& announced, int64_t step) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(announced, absl::MaxSplits(' ', 1));
  // Rank 0 announces its next step before anybody can have ended that.
  int64_t last = 0;
  if (!absl::SimpleAtoi(parts.first, &last) || last < step || last > step + 1) {
    return absl::InternalError(absl::StrCat("after step ", step,
                                            " rank 0 announces a stop after \"",
                                            absl::CHexEscape(announced), "\""));
  }
  stop_step_ = last;
  stop_reason_ = parts.second;
  return absl::OkStatus();
}

absl::StatusOr<bool> Control::ShouldStop(int64_t step, bool requested, const std::string& reason) {
  if (world_size_ == 1) {
    stop_reason_ = reason;
    return requested;
  }
  const std::string request_key = Key("stop", "request");
  const std::string step_key = Key("stop", "step");
  if (requested && !stop_announced_ && rank_ != 0) {
    stop_announced_ = true;
    const absl::Status set = store_->Set(request_key, reason);
    if (!set.ok() && !absl::IsAlreadyExists(set)) return set;
  }
  if (stop_step_ < 0 && rank_ == 0) {
    // Step + 1 cannot end anywhere before rank 0 has begun it, that is, after this was written. So
    // after step + 1 every rank reads it.
    const absl::StatusOr<std::string> asked = store_->Get(request_key, absl::ZeroDuration());
    if (requested || asked.ok()) {
      stop_step_ = step + 1;
      stop_reason_ = requested ? reason : *asked;
      PLANC_RETURN_IF_ERROR(store_->Set(step_key, absl::StrCat(stop_step_, " ", stop_reason_)));
    }
  } else if (stop_step_ < 0) {
    const absl::StatusOr<std::string> announced = store_->Get(step_key, absl::ZeroDuration());
    if (announced.ok()) {
      PLANC_RETURN_IF_ERROR(TakeStopStep(*announced, step));
    } else if (!absl::IsNotFound(announced.status())) {
      return announced.status();
    }
  }
  return stop_step_ >= 0 && step >= stop_step_;
}

}  // namespace planc
