// planc run: carries out a plan, as one rank or by starting all ranks of one machine.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/catalog/devices.h"
#include "kernels/instruction_set.h"
#include "planc/commands.h"
#include "planc/device_notice.h"
#include "planc/exit_codes.h"
#include "planc/flags.h"
#include "planc/go_on.h"
#include "planc/load_plan.h"
#include "planc/node_memory.h"
#include "planc/restart_points.h"
#include "planc/resume_before_run.h"
#include "planc/run_deadlines.h"
#include "planc/run_instruction_set.h"
#include "planc/started_run.h"
#include "planc/text.h"
#include "planc/versions.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/token_loader.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/local_launcher.h"
#include "runtime/launch/placement.h"
#include "runtime/launch/run_fault.h"
#include "runtime/launch/signals.h"
#include "runtime/launch/step_page.h"
#include "runtime/owned_run.h"
#include "runtime/step/profile_trace.h"
#include "runtime/train.h"
#include "schemas/counted.h"
#include "schemas/fault.h"
#include "schemas/plan_io.h"

namespace planc {
namespace {

constexpr char kStoppedEarly[] =
    "planc run: stopped by a signal before training began; the same command begins again\n";

struct RunArguments {
  std::string input;
  std::vector<std::string> sets;
  RunOptions options;
  bool fresh = false;
  std::optional<DataIdentity> data;
  bool check_memory = true;
};

int Report(const absl::Status& status, std::ostream& err) {
  if (!status.ok())
    err << Wrap(absl::StrCat("planc run: ", std::string(status.message())), 2) << "\n";
  err.flush();
  return ExitCodeOfTraining(status);
}

absl::StatusOr<RunArguments> ReadArguments(const std::vector<std::string>& args) {
  const absl::StatusOr<Flags> flags = ParseFlags("run", args);
  if (!flags.ok()) return flags.status();
  if (flags->positional.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one job or plan file is needed, ", flags->positional.size(), " are named"));
  }
  RunArguments arguments;
  arguments.input = flags->positional[0];
  arguments.sets = flags->All("--set");
  arguments.fresh = flags->Has("--fresh");
  arguments.check_memory = !flags->Has("--no-memory-check");
  arguments.options.profile = flags->Has("--profile");
  arguments.options.base_directory = flags->Get("--base");
  const absl::StatusOr<host::InstructionSet> instruction_set =
      ChooseInstructionSet(flags->Get("--instruction-set"));
  if (!instruction_set.ok()) return instruction_set.status();
  arguments.options.instruction_set = *instruction_set;
  if (flags->Has("--resume")) {
    arguments.options.resume_from = ResumePath(flags->Get("--resume"));
  }
  if (flags->Has("--steps")) {
    const std::string steps = flags->Get("--steps");
    int64_t number = 0;
    if (!absl::SimpleAtoi(steps, &number) || number < 1) {
      return absl::InvalidArgumentError(absl::StrCat("--steps `", steps, "` is not a number >= 1"));
    }
    arguments.options.stop_after = number;
  }
  return arguments;
}

// What the metrics measure utilisation against; nothing for the host, whose peak depends on the
// machine.
std::optional<double> PeakFlops(const proto::Job& job) {
  const DeviceSpec* const device = FindDevice(job.cluster().device());
  if (device == nullptr || device->name == "host") return std::nullopt;
  return job.precision().compute() == proto::FP32 ? device->fp32_flops : device->bf16_flops;
}

// Whether this program, started as `launch` says, can run the plan.
absl::Status CheckLaunch(const Plan& plan, const LaunchConfig& launch) {
  const int64_t ranks = plan.mesh.WorldSize();
  if (plan.job.cluster().device() != kRunnableDevice) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the plan is for device ", plan.job.cluster().device(), "; this program runs device host"));
  }
  if (launch.source == LaunchSource::kAlone) {
    if (ranks == plan.ranks_per_node) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "the plan has ", Counted(ranks, "rank"), " on ",
        Counted(ranks / plan.ranks_per_node, "machine"), " with ", plan.ranks_per_node,
        " each; start it on all of them, e.g. with\n  ",
        StartCommand(LaunchSource::kSlurm, ranks / plan.ranks_per_node, plan.ranks_per_node)));
  }
  if (launch.world_size == ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the plan has ", Counted(ranks, "rank"), ", but ", LaunchSourceName(launch.source),
      " started ", launch.world_size, ": start it with\n  ",
      StartCommand(launch.source, ranks / plan.ranks_per_node, plan.ranks_per_node)));
}

// A rank reads the plan by its path, which another program may have replaced since the run began.
absl::Status CheckPlanIsThatOf(const RunStart& run, const std::string& hash,
                               const std::string& path) {
  if (run.plan_hash == hash) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, " was replaced while the run went on: it holds plan ", hash,
      ", and the run is of plan ", run.plan_hash, ". The same command goes on with the run"));
}

// For a rank that cannot leave its program: it tells why, and ends.
void EndStuckRank(const absl::Status& stall) {
  const std::string text =
      Wrap(absl::StrCat("planc run: this rank is stuck: ", std::string(stall.message())), 2) + "\n";
  // Not through a stream, whose lock another thread may hold.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(kExitPeerLost);
}

// One trace of all ranks, profile.json, from those that each of them wrote.
absl::Status MergeTraces(int64_t ranks, const std::string& directory) {
  std::vector<std::string> traces;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    absl::StatusOr<std::string> trace =
        ReadFile(absl::StrCat(directory, "/", ProfileFileStem(rank), ".json"));
    if (!trace.ok()) return trace.status();
    traces.push_back(*std::move(trace));
  }
  return WriteFile(directory + "/profile.json", MergedTrace(traces));
}

// Writes the plan where every rank reads it, and starts one process for each.
absl::StatusOr<int> StartRanks(const Plan& plan, const RunOptions& options, const OwnedRun& run,
                               RunFault* fault) {
  const std::string& directory = run.folders().run;
  const absl::StatusOr<std::string> bytes = SerializePlan(plan);
  if (!bytes.ok()) return bytes.status();
  const std::string path = directory + "/plan.plan";
  const absl::Status written = WriteFile(path, *bytes);
  if (!written.ok()) return written;

  LocalLaunchOptions launch;
  launch.arguments = {
      "planc", "run", path, absl::StrCat("--base=", options.base_directory),
      absl::StrCat("--instruction-set=", host::InstructionSetName(options.instruction_set))};
  if (options.stop_after.has_value()) {
    launch.arguments.push_back(absl::StrCat("--steps=", *options.stop_after));
  }
  if (options.profile) launch.arguments.push_back("--profile");
  launch.world_size = plan.mesh.WorldSize();
  launch.log_directory = directory + "/logs";
  launch.log_heading =
      absl::StrCat("---- run ", run.record().id, ", start ", run.record().starts, " ----");
  launch.run = RunStartText(run.start());
  launch.restarts = plan.job.run().restarts();
  launch.restart_point = [&run] { return NewestRestartPoint(run); };
  const absl::StatusOr<int> ended = LaunchLocal(launch, fault);
  if (!options.profile || !ended.ok() || *ended != kExitOk) return ended;
  const absl::Status merged = MergeTraces(launch.world_size, directory);
  if (!merged.ok()) return merged;
  return ended;
}

// After a stop.
void TellHowToGoOn(const std::vector<std::string>& args, const Plan& plan,
                   const LaunchConfig& launch, std::ostream& out) {
  out << "go on with\n  "
      << (launch.source == LaunchSource::kAlone ? "" : "the launcher as before, and ")
      << GoOnCommand(args, plan.job.checkpoint().resume()) << std::endl;
}

int TrainHere(const Plan& plan, const LaunchConfig& launch, RunOptions options, std::ostream& out,
              std::ostream& err) {
  options.peak_flops = PeakFlops(plan.job);
  options.out = &out;
  const RunDeadlines deadlines = DeadlinesOf(plan);
  options.stall.deadline = deadlines.stall;
  options.stall.estimated = deadlines.estimated;
  options.stall.on_stuck = &EndStuckRank;
  options.agreement_timeout = deadlines.agreement;
  options.connect_timeout = deadlines.connect;
  for (const auto& [name, version] : LinkedVersions()) options.versions[name] = version;
  host::UseVectorsOf(options.instruction_set);
  const absl::StatusOr<TrainingEnd> end = Train(plan, launch, options);
  if (end.ok() && *end == TrainingEnd::kStopped) return kExitStopped;
  return Report(end.status(), err);
}

// Carries out the run that this process speaks for, and says which one it is and where its files
// are, before and after.
class SpokenRun {
 public:
  SpokenRun(const std::vector<std::string>& command, const LoadedPlan& loaded,
            const LaunchConfig& launch, const RunArguments& arguments, std::ostream& out,
            std::ostream& err)
      : command_(command),
        plan_(loaded.plan),
        launch_(launch),
        options_(arguments.options),
        request_(RequestOf(loaded, options_, launch, arguments.fresh)),
        out_(out),
        err_(err) {
    request_.data = arguments.data;
    request_.lock.on_watch = [this](const std::string& text) {
      err_ << Wrap(absl::StrCat("planc run: ", text), 2) << std::endl;
    };
    request_.lock.cancelled = [] { return ScopedStopSignals::Received() != 0; };
  }

  int Run() {
    if (launch_.source != LaunchSource::kAlone) {  // rank 0: the others must be there first
      options_.begin_run = [this] { return Begin(); };
      return TrainAsRank();
    }
    const absl::StatusOr<RunStart> start = Begin();
    if (!start.ok()) return Report(start.status(), err_);
    if (start->complete) return End(kExitOk);
    if (plan_.mesh.WorldSize() == 1 && plan_.job.run().restarts() == 0) {
      options_.run = *start;
      return TrainAsRank();
    }
    RunFault fault;
    const absl::StatusOr<int> ended = StartRanks(plan_, options_, *run_, &fault);
    return End(ended.ok() ? *ended : Report(ended.status(), err_), fault);
  }

 private:
  // Trains in this process; the fault of a lost peer is the same again in the same step.
  int TrainAsRank() {
    const absl::StatusOr<StepPage> steps = StepPage::Create(launch_.world_size);
    if (!steps.ok()) return Report(steps.status(), err_);
    LaunchConfig launch = launch_;
    launch.step_page = dup(steps->descriptor());
    RunFault fault;
    const int code = TrainHere(plan_, launch, options_, out_, err_);
    if (code == kExitPeerLost) {
      fault.code = code;
      fault.step = steps->StepOf(launch_.rank);
    }
    return End(code, fault);
  }

  absl::StatusOr<RunStart> Begin() {
    absl::StatusOr<std::unique_ptr<OwnedRun>> run = OwnedRun::Begin(plan_, request_);
    if (!run.ok()) return run.status();
    run_ = *std::move(run);
    out_ << StartText(*run_) << std::flush;
    return run_->start();
  }

  int End(int code, const RunFault& fault = {}) {
    if (run_ == nullptr) return code;
    if (code == kExitPeerLost && fault.code == kExitPeerLost) {
      std::string notice;
      code = static_cast<int>(run_->CodeAfter(fault, &notice));
      if (!notice.empty()) err_ << Wrap(absl::StrCat("planc run: ", notice), 2) << "\n";
    }
    const absl::Status recorded = run_->End(code);
    if (!recorded.ok()) err_ << Wrap(absl::StrCat("planc run: ", recorded.message()), 2) << "\n";
    out_ << EndText(*run_, code) << std::flush;
    if (code == kExitStopped) TellHowToGoOn(command_, plan_, launch_, out_);
    return code;
  }

  const std::vector<std::string>& command_;  // arguments of `planc run`
  const Plan& plan_;
  const LaunchConfig& launch_;
  RunOptions options_;
  RunRequest request_;
  std::ostream& out_;
  std::ostream& err_;
  std::unique_ptr<OwnedRun> run_;
};

// Every rank, so that all end with the same code; those of the local launcher were checked for.
int CheckResume(const LoadedPlan& loaded, const LaunchConfig& launch, RunArguments* arguments,
                std::ostream& err) {
  RunOptions& options = arguments->options;
  const bool automatic =
      options.resume_from.value_or(loaded.plan.job.checkpoint().resume()) == "auto";
  // A fresh run has moved what `auto` would find aside by then.
  if (launch.source == LaunchSource::kLocal || (arguments->fresh && automatic)) return kExitOk;
  // A launcher's restart does not look for what its first start was told to begin from.
  const RunRequest request = RequestOf(loaded, options, launch, arguments->fresh);
  std::optional<std::string> own = "auto";
  return CheckResumeBeforeRun(arguments->input, loaded, options.base_directory,
                              GoesOnByItself(loaded.plan, request) ? &own : &options.resume_from,
                              err);
}

}  // namespace

int RunRun(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  // A signal asks to stop from here on. Output that nobody reads, or that a full disk refuses, is
  // lost and does not stop the training: metrics and logs are files.
  const ScopedStopSignals stop_signals;
  IgnorePipeSignal();
  absl::StatusOr<RunArguments> arguments = ReadArguments(args);
  if (!arguments.ok()) return UsageError("run", arguments.status(), err);
  RunOptions& options = arguments->options;

  LoadedPlan loaded;
  const int code = LoadPlan("planc run", arguments->input, arguments->sets, err, &loaded);
  if (code != kExitOk) return code;
  const Plan& plan = loaded.plan;
  if (options.base_directory.empty()) {
    options.base_directory = std::filesystem::path(arguments->input).parent_path().string();
    if (options.base_directory.empty()) options.base_directory.assign(1, '.');
  }
  const absl::StatusOr<LaunchConfig> launch = DetectLaunch();
  const absl::Status launchable = launch.ok() ? CheckLaunch(plan, *launch) : launch.status();
  if (!launchable.ok()) {
    Report(launchable, err);
    return kExitJobError;
  }

  const int resumable = CheckResume(loaded, *launch, &*arguments, err);
  if (resumable != kExitOk) return resumable;

  // Before anything is allocated: here for the ranks that this process starts, else by one rank of
  // each machine once all are there.
  if (arguments->check_memory && launch->source == LaunchSource::kAlone) {
    const absl::Status fits = CheckNodeMemory(plan, *launch, /*running=*/false, BoundsHere());
    if (!fits.ok()) return Report(fits, err);
  } else if (arguments->check_memory && launch->local_rank == 0) {
    options.check_memory = [&plan, &launch] {
      return CheckNodeMemory(plan, *launch, /*running=*/true, BoundsHere());
    };
  }

  // Whoever speaks for the job reads the data once, before anything is started.
  const bool speaks = launch->source != LaunchSource::kLocal && launch->rank == 0;
  if (speaks) {
    // Alone, nobody waits for this process.
    if (launch->source == LaunchSource::kAlone) ScopedStopSignals::EndAtOnce(kStoppedEarly);
    const DataFindings data = InspectData(plan.job, options.base_directory);
    ScopedStopSignals::EndAtOnce(nullptr);
    for (const std::string& warning : data.warnings) {
      err << Wrap(absl::StrCat("planc run: warning: ", warning), 2) << "\n";
    }
    if (!data.errors.empty()) return Report(data.ToStatus(), err);
    absl::StatusOr<DataIdentity> identity = IdentifyData(plan.job, options.base_directory);
    if (!identity.ok()) return Report(identity.status(), err);
    arguments->data = *std::move(identity);
    out << "plan " << loaded.hash << ": " << plan.job.job() << ", "
        << Counted(plan.mesh.WorldSize(), "rank") << "\n";
    out.flush();
  }
  if (speaks) return SpokenRun(args, loaded, *launch, *arguments, out, err).Run();
  if (launch->source == LaunchSource::kLocal) {
    absl::StatusOr<RunStart> run = ParseRunStart(launch->run);
    if (!run.ok()) return Report(run.status(), err);
    const absl::Status same = CheckPlanIsThatOf(*run, loaded.hash, arguments->input);
    if (!same.ok()) return Report(same, err);
    if (options.resume_from.has_value()) run->resume = *options.resume_from;  // of a restart
    options.run = *std::move(run);
  }
  return TrainHere(plan, *launch, options, out, err);
}

}  // namespace planc
