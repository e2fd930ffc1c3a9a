// Saves on a disk that fails: at every system call of a save, in every way, and whatever the next
// save finds then.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/checkpoint_directory.h"
#include "runtime/checkpoint/file_system.h"
#include "runtime/checkpoint/test_plan.h"
#include "runtime/checkpoint/test_state.h"
#include "runtime/checkpoint/verify_checkpoint.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

enum class Fault {
  kNone,
  kFullDisk,     // nothing more can be created or written
  kReadOnly,     // nothing more can be changed
  kInputOutput,  // one call fails with EIO
  kShortWrite,   // one write writes half
  kInterrupt,    // one write, sync or close is interrupted
  kCrash,        // the process ends: one last write is torn, nothing else happens any more
  kPowerLoss,    // and what was not synced is lost
};

const char* FaultName(Fault fault) {
  constexpr const char* kNames[] = {"none",        "full disk", "read only", "EIO",
                                    "short write", "EINTR",     "crash",     "power loss"};
  return kNames[static_cast<int>(fault)];
}

enum class CallKind { kCreate, kOpen, kWrite, kSync, kClose, kMake, kRename, kRemove };

// The host's file system, with a fault at one call. Nothing really waits for the disk.
class FaultyFileSystem : public FileSystem {
 public:
  FaultyFileSystem(Fault fault, int64_t at) : fault_(fault), at_(at) {}

  int64_t calls() const { return calls_; }

  // Takes away what a machine that lost its power would have lost: contents of files, entries of
  // folders and renames that were not waited for.
  void LosePower() {
    for (const NewFile& file : created_) {
      std::error_code error;
      if (!file.entry_synced) {
        fs::remove(file.path, error);
      } else if (!file.contents_synced) {
        fs::resize_file(file.path, fs::file_size(file.path) / 2, error);
      }
    }
    for (auto rename = renames_.rbegin(); rename != renames_.rend(); ++rename) {
      std::error_code error;
      fs::rename(rename->second, rename->first, error);
    }
  }

  int Create(const std::string& path) const override {
    if (const int error = Enter(CallKind::kCreate)) return error;
    const int file = host_.Create(path);
    const std::lock_guard<std::mutex> lock(mutex_);
    open_[file] = path;
    created_.push_back({path});
    return file;
  }
  int OpenDirectory(const std::string& path) const override {
    if (const int error = Enter(CallKind::kOpen)) return error;
    const int folder = host_.OpenDirectory(path);
    const std::lock_guard<std::mutex> lock(mutex_);
    open_[folder] = path;
    return folder;
  }
  int64_t Write(int file, const void* data, int64_t bytes, int64_t offset) const override {
    bool torn = false;
    if (const int error = Enter(CallKind::kWrite, &torn)) {
      if (torn) host_.Write(file, data, bytes / 2, offset);
      return error;
    }
    return host_.Write(file, data, torn ? std::max<int64_t>(bytes / 2, 1) : bytes, offset);
  }
  void StartWriting(int, int64_t, int64_t) const override {}
  int Sync(int file) const override {
    if (const int error = Enter(CallKind::kSync)) return error;
    const std::lock_guard<std::mutex> lock(mutex_);
    const fs::path synced = open_[file];
    for (NewFile& created : created_) {
      created.contents_synced |= fs::path(created.path) == synced;
      created.entry_synced |= fs::path(created.path).parent_path() == synced;
    }
    std::erase_if(renames_, [&](const auto& rename) {
      return fs::path(rename.second).parent_path() == synced;
    });
    return 0;
  }
  int Close(int file) const override {
    const int error = Enter(CallKind::kClose);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      open_.erase(file);
    }
    host_.Close(file);  // Linux does so whatever it returns
    return error;
  }
  int MakeDirectory(const std::string& path) const override {
    if (const int error = Enter(CallKind::kMake)) return error;
    return host_.MakeDirectory(path);
  }
  int Rename(const std::string& from, const std::string& to) const override {
    if (const int error = Enter(CallKind::kRename)) return error;
    const std::lock_guard<std::mutex> lock(mutex_);
    renames_.emplace_back(from, to);
    for (NewFile& file : created_) {
      const fs::path path = file.path;
      if (path.parent_path() != fs::path(from)) continue;
      file.path = absl::StrCat(to, "/", path.filename().string());
    }
    return host_.Rename(from, to);
  }
  int Remove(const std::string& path) const override {
    if (const int error = Enter(CallKind::kRemove)) return error;
    return host_.Remove(path);
  }

 private:
  struct NewFile {
    std::string path;
    bool contents_synced = false;
    bool entry_synced = false;
  };

  // The error of this call, or 0. `torn`: a write writes half, before its error if it has one.
  int Enter(CallKind kind, bool* torn = nullptr) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t call = calls_++;
    const bool now = call == at_;
    const bool after = call >= at_;
    const bool writes = kind == CallKind::kWrite;
    switch (fault_) {
      case Fault::kNone:
        return 0;
      case Fault::kFullDisk:
        return after && (writes || kind == CallKind::kCreate || kind == CallKind::kMake) ? -ENOSPC
                                                                                         : 0;
      case Fault::kReadOnly:
        return after && kind != CallKind::kOpen && kind != CallKind::kSync &&
                       kind != CallKind::kClose
                   ? -EROFS
                   : 0;
      case Fault::kInputOutput:
        return now ? -EIO : 0;
      case Fault::kShortWrite:
        if (writes) *torn = now;
        return 0;
      case Fault::kInterrupt:
        return now && (writes || kind == CallKind::kSync || kind == CallKind::kClose) ? -EINTR : 0;
      case Fault::kCrash:
      case Fault::kPowerLoss:
        if (writes) *torn = now;
        return after ? -EIO : 0;
    }
    return 0;
  }

  const HostFileSystem host_;
  const Fault fault_;
  const int64_t at_;
  mutable std::mutex mutex_;
  mutable int64_t calls_ = 0;
  mutable std::map<int, std::string> open_;  // files and folders
  mutable std::vector<NewFile> created_;
  mutable std::vector<std::pair<std::string, std::string>> renames_;  // not synced, in order
};

struct Scenario {
  const char* name;
  Plan plan;
  int64_t keep;
  int64_t step;  // saved onto a disk that has step 5 and, where keep allows it, step 3
  std::vector<Fault> faults;
};

const std::vector<Fault>& AllFaults() {
  static const auto* const faults = new std::vector<Fault>{
      Fault::kFullDisk,  Fault::kReadOnly, Fault::kInputOutput, Fault::kShortWrite,
      Fault::kInterrupt, Fault::kCrash,    Fault::kPowerLoss};
  return *faults;
}

// Those that stop a save at any call.
std::vector<Fault> Interruptions() {
  return {Fault::kInputOutput, Fault::kCrash, Fault::kPowerLoss};
}

class CheckpointFaultsTest : public testing::Test {
 protected:
  CheckpointFaultsTest() {
    directory_ = testing::TempDir() + "faults_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  std::string PathOf(int64_t step) const { return directory_ + "/" + CheckpointName(step); }

  std::vector<std::string> Leftovers() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      const std::string name = entry.path().filename().string();
      if (!StepOfName(name).has_value()) names.push_back(name);
    }
    return names;
  }

  // A fresh directory with the older checkpoints: their salt is their step.
  void Prepare(const Scenario& scenario) {
    fs::remove_all(directory_);
    const FaultyFileSystem files(Fault::kNone, 0);
    SaveOptions options;
    options.files = &files;
    for (const int64_t step : {3, 5}) {
      ASSERT_TRUE(SaveState(scenario.plan, directory_, step, static_cast<int>(step), options).ok());
    }
  }

  absl::Status SaveWith(const Scenario& scenario, int64_t step, int salt, const FileSystem& files) {
    SaveOptions options;
    options.files = &files;
    return SaveState(scenario.plan, directory_, step, salt, options);
  }

  // The newest checkpoint must be one that was whole: step 5 of before, or the new one.
  void ExpectNothingLost(const Scenario& scenario, bool saved) {
    const std::vector<CheckpointEntry> entries = ListCheckpoints(directory_);
    ASSERT_FALSE(entries.empty());
    for (const CheckpointEntry& entry : entries) {
      const auto report = VerifyCheckpoint(entry.path);
      EXPECT_TRUE(report.ok() && report->defects.empty()) << entry.path;
    }
    const CheckpointEntry& newest = entries.back();
    const absl::Status is_new = LoadState(scenario.plan, newest.path, kNewSalt);
    if (saved) {
      EXPECT_EQ(newest.path, PathOf(scenario.step));
      EXPECT_TRUE(is_new.ok()) << is_new;
    } else if (newest.step != scenario.step) {
      EXPECT_EQ(newest.step, 5);
    }
    if (is_new.ok()) return;
    const absl::Status is_old = LoadState(scenario.plan, newest.path, 5);
    EXPECT_TRUE(newest.step == 5 && is_old.ok()) << is_new << " " << is_old;
  }

  // One save with a fault at call `at`; false when the save makes fewer calls.
  bool Try(const Scenario& scenario, Fault fault, int64_t at) {
    Prepare(scenario);
    FaultyFileSystem files(fault, at);
    const absl::Status status = SaveWith(scenario, scenario.step, kNewSalt, files);
    if (fault == Fault::kPowerLoss) files.LosePower();
    ExpectNothingLost(scenario, status.ok());
    const bool harmless = fault == Fault::kShortWrite || fault == Fault::kInterrupt;
    EXPECT_TRUE(status.ok() || !harmless) << status;
    EXPECT_TRUE(status.ok() || std::string(status.message()).find(directory_) != std::string::npos)
        << status;
    EXPECT_TRUE(fault != Fault::kFullDisk || Leftovers().empty()) << Leftovers().front();
    ExpectNextSaveWorks(scenario);
    return files.calls() > at;
  }

  void ExpectNextSaveWorks(const Scenario& scenario) {
    const FaultyFileSystem files(Fault::kNone, 0);
    const absl::Status status = SaveWith(scenario, 20, 20, files);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_THAT(Leftovers(), testing::IsEmpty());
    EXPECT_TRUE(LoadState(scenario.plan, PathOf(20), 20).ok());
    EXPECT_LE(static_cast<int64_t>(ListCheckpoints(directory_).size()), scenario.keep);
  }

  static constexpr int kNewSalt = 7;
  std::string directory_;
};

Plan PlanOf(int64_t dp_shard, int64_t keep) {
  Plan plan = CheckpointTestPlan(1, 1, dp_shard, 1);
  plan.job.mutable_checkpoint()->set_keep(keep);
  return plan;
}

TEST_F(CheckpointFaultsTest, NothingIsLostWhateverCallFails) {
  const Scenario scenarios[] = {{"new step", PlanOf(1, 2), 2, 10, AllFaults()},
                                {"only one kept", PlanOf(1, 1), 1, 10, Interruptions()},
                                {"the same step again", PlanOf(1, 1), 1, 5, Interruptions()},
                                {"two ranks", PlanOf(2, 2), 2, 10, Interruptions()}};
  for (const Scenario& scenario : scenarios) {
    int64_t tries = 0;
    for (const Fault fault : scenario.faults) {
      SCOPED_TRACE(absl::StrCat(scenario.name, ", ", FaultName(fault)));
      int64_t at = 0;
      for (bool within = true; within && !HasFailure(); ++at) {
        SCOPED_TRACE(absl::StrCat("call ", at));
        within = Try(scenario, fault, at);
      }
      EXPECT_GT(at, 50);
      tries += at;
    }
    std::cout << scenario.name << ": " << tries << " faults\n";
  }
}

TEST_F(CheckpointFaultsTest, AnErrorNamesTheTensor) {
  const Scenario scenario{"", PlanOf(1, 2), 2, 10, {}};
  int64_t named = 0;
  for (int64_t at = 0; at < 60; ++at) {
    Prepare(scenario);
    const FaultyFileSystem files(Fault::kFullDisk, at);
    const std::string message(SaveWith(scenario, 10, kNewSalt, files).message());
    if (message.find("rank-00000.safetensors: cannot write tensor ") == std::string::npos) continue;
    EXPECT_THAT(message, HasSubstr(": No space left on device"));
    ++named;
  }
  EXPECT_GT(named, 30);
}

TEST_F(CheckpointFaultsTest, WhatMustComeFirstMayRefuse) {
  const Scenario scenario{"", PlanOf(2, 2), 2, 10, {}};
  Prepare(scenario);
  SaveOptions options;
  options.before_commit = [] { return absl::InternalError("metrics.jsonl: cannot sync"); };
  const absl::Status status = SaveState(scenario.plan, directory_, 10, kNewSalt, options);
  EXPECT_EQ(status.message(), "metrics.jsonl: cannot sync");
  EXPECT_THAT(Leftovers(), testing::IsEmpty());
  ExpectNothingLost(scenario, false);
}

TEST_F(CheckpointFaultsTest, LaterStepsOfAnotherRunAreLeftAlone) {
  const Plan plan = PlanOf(1, 1);
  ASSERT_TRUE(SaveState(plan, directory_, 100, 1).ok());
  ASSERT_TRUE(SaveState(plan, directory_, 10, 2).ok());
  ASSERT_TRUE(SaveState(plan, directory_, 20, 3).ok());
  EXPECT_TRUE(LoadState(plan, PathOf(100), 1).ok());
  EXPECT_TRUE(LoadState(plan, PathOf(20), 3).ok());
  EXPECT_FALSE(fs::exists(PathOf(10)));
}

}  // namespace
}  // namespace planc
