#ifndef PLANC_SCHEMAS_VERIFY_SIMULATE_H_
#define PLANC_SCHEMAS_VERIFY_SIMULATE_H_

#include <array>
#include <string>
#include <vector>

#include "schemas/verify_execute.h"

namespace planc::verifying {

// Runs one program on one representative rank of every pipeline stage, streams and all, and has the
// executor follow.
//
// Why one rank for each stage is enough. The ranks of a stage run the same instructions on the same
// streams with the same events, and a group without the pp axis has members of one stage only, on
// which the k-th operation of a stream is the same instruction. If the representatives can finish
// in some order, all ranks can: let every rank take its instructions in the order of its stage's
// representative, the ranks of a stage in lock-step. Transfers and groups with the pp axis join
// ranks that agree on all other coordinates or take all of them, and are matched here between the
// representatives. So a total order of all operations exists in which each rank's operations appear
// in the order of its streams and events, and in which every communication meets all its members:
// nothing can deadlock.
//
// Nothing is assumed to be buffered: a send completes when its receive takes part.
class Simulator {
 public:
  Simulator(const FlatPlan& flat, Executor& executor, Report& report);

  void Run(ProgramKind kind);

 private:
  // The next instruction of one stream of one stage.
  struct Head {
    size_t call = 0;
    size_t place = 0;  // in FlatBlock::on_stream
    bool done = false;
    const FlatInstruction* instruction = nullptr;
    int64_t position = 0;  // of the instruction in program order; past all of them when done
  };
  struct Stage {
    FlatProgram program;
    std::vector<Clock> clocks;  // of records made
    std::array<Head, kStreamCount> heads;
  };
  struct Place {
    int stage;
    int stream;
  };

  bool Advance(int stage, int stream);  // executes what can be executed; whether it did
  bool TryTransfer(int stage, int stream);
  bool TryAcross(int stage, int stream);
  void Settle(int stage,
              int stream);  // moves the head to the next instruction, if it is not on one
  void Finish(int stage, int stream);
  Site SiteAt(int stage, int stream);
  const FlatInstruction& At(int stage, int stream) const {
    return *stages_[stage].heads[stream].instruction;
  }
  // The stream that a wait of the head is blocked by, -1 for none.
  int BlockedBy(int stage, int stream) const;
  bool IsPassed(int stage, const FlatProgram::Record& record) const;
  void Wait(int stage, int stream);
  Place PeerOf(int stage, int stream) const;
  std::vector<int> StagesOf(const FlatInstruction& instruction) const;
  bool SameCollective(const Site& a, const Site& b);

  // verify_deadlock.cc
  void ReportDeadlock();
  Place WaitsFor(const Place& place) const;
  std::string TextAt(const Place& place);

  const FlatPlan& flat_;
  Executor& executor_;
  Report& report_;
  std::vector<Stage> stages_;
  int64_t looks_ = 0;  // at heads of streams
};

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_SIMULATE_H_
