#ifndef PLANC_SCHEMAS_VERIFY_EXECUTE_H_
#define PLANC_SCHEMAS_VERIFY_EXECUTE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schemas/verify_definitions.h"
#include "schemas/verify_flat.h"
#include "schemas/verify_layouts.h"
#include "schemas/verify_memory.h"
#include "schemas/verify_model.h"
#include "schemas/verify_report.h"

namespace planc::verifying {

// One instruction about to run on one rank of a stage.
struct Site {
  int stage = 0;
  Memory* memory = nullptr;
  const FlatCall* call = nullptr;
  const FlatInstruction* instruction = nullptr;
  const FlatOperand* operands = nullptr;
};

// Executes a plan on symbolic values: each range of memory holds a Value that says what the plan
// put there. One rank stands for its class; instructions come in an order that respects streams,
// events and communication. What the plan must be to pass:
//   * every operand holds, whole and in its type, what the operation needs, in a layout that it
//     takes (verify_layouts.h), of the microbatch and layer of the call;
//   * every backward operation gets the complete gradient of its forward operation's result, and
//   the
//     values which that operation used;
//   * gradients of parameters have one contribution of each microbatch (and use) when AdamW sees
//     them, and are reduced over every axis on which they were partial;
//   * the state that a step or evaluation begins with is the state that it leaves.
class Executor {
 public:
  Executor(const FlatPlan& flat, Report& report);

  Memory& memory(int stage) { return memories_[stage]; }
  void BeginProgram(ProgramKind kind);
  void EndProgram(ProgramKind kind);

  // A local operation, or a collective within the stage.
  void Execute(const Site& site);
  // A collective whose members lie on several stages; one site for each of these.
  void ExecuteAcross(const std::vector<Site>& sites);
  void ExecuteTransfer(const Site& send, const Site& receive);

  // "stage 1, step, call 12 layer_forward layer=3 microbatch=0, instruction 4 matmul".
  std::string Text(const Site& site) const;

 private:
  // What is known of one unit on one stage and slot.
  struct UnitState {
    int version = 0;       // updates of its master weights
    int updates = 0;       // in this step
    int gathers = 0;       // of its weights over dp_shard, in this step
    int gathered_in = -1;  // pool of the gathered weights
    int reduces = 0;       // of its gradient over dp_shard, in this step
    // The shard that is gathered, or reduced, lies in the whole weights or gradient.
    bool gathers_in_place = false;
    bool reduces_in_place = false;
    bool ready = false;  // has initial values
  };
  // What the gradient of a unit, on one layer, is the sum of: a contribution for each use of one of
  // its parameters by an operation of the forward pass.
  struct Contributions {
    int64_t count = 0;
    uint64_t sum = 0;  // of their hashes
  };
  // Layers of microbatches whose forward pass a stage has done in this step, and not the backward.
  struct InFlight {
    int64_t now = 0;
    int64_t most = 0;
  };
  using Values = std::array<const Value*, kMaxOperands>;

  // verify_execute.cc: operands.
  void Bad(const Site& site, const char* rule, const std::string& message);
  void BadOperand(const Site& site, int k, const char* rule, const std::string& message);
  const std::string& BufferName(const Site& site, int k) const;
  // Whether the buffer of operand k is declared to have this layout.
  void CheckLabel(const Site& site);
  bool CheckDeclared(const Site& site, int k, const AxisCodes& layout);
  void Touch(const Site& site, int k);                  // reads the cells of operand k, in order
  const Value& ValueOf(const Site& site, int k) const;  // of its first cell
  bool ReadTensor(const Site& site, int k, Value* value);
  bool ReadScalar(const Site& site, int k, ValueRole role, bool may_be_zero, Value* value);
  bool IsZero(const Site& site, int k) const;
  void Write(const Site& site, int k, Value value);
  void WriteZero(const Site& site, int k);
  void WriteScratch(const Site& site);
  bool ApplyLayouts(const Site& site, const Values& values);
  void CheckAliases(const Site& site);

  // verify_forward.cc
  void Forward(const Site& site);
  void LoadData(const Site& site);
  void Loss(const Site& site);
  bool Define(const Definition& definition);  // false: it was defined before
  void CheckSequence(const Site& site, const Value& normalized);
  Contributions& ContributionsTo(int unit, int layer);
  Value Derive(const Site& site, const Value* values, int count);
  bool CheckMicrobatch(const Site& site, const Value& value);

  // verify_rows.cc
  bool TakeRows(const Site& site, int k, const Value& whole, Value* value);
  bool JoinRows(const Site& site, int k, Value* value);
  bool CheckRows(const Site& site, int k, const Value& value);

  // verify_backward.cc
  void Backward(const Site& site);
  void MatmulOf(const Site& site);
  void MatmulGradient(const Site& site, const Value& a, const Value& b);
  void MatmulBackward(const Site& site, const Value& dy, const Value& weight, const WeightUse& use);
  void NormBackward(const Site& site);
  void HeadNormBackward(const Site& site);
  void BiasBackward(const Site& site);
  void EmbeddingBackward(const Site& site);
  void RopeBackward(const Site& site);
  void AttentionBackward(const Site& site);
  void ActivationBackward(const Site& site);
  void AddOf(const Site& site);
  // The forward operation whose result `dy` is the complete gradient of, seen through sums and
  // biases.
  Definition* Trace(const Site& site, const Value& dy, Opcode opcode);
  int TermsToward(const Value& gradient, uint64_t target);
  bool IsComplete(const Value& gradient);
  Definition* FindThrough(uint64_t hash, Opcode opcode, int limit);
  bool ReachesThrough(uint64_t hash, uint64_t target, int limit);
  void AddGradient(const Site& site, int k, const Value& before, Definition& forward, int at,
                   const Value& dy);

  // verify_units.cc: ranges of flat units.
  bool ReadWeight(const Site& site, int k, Value* value, WeightUse* use);
  bool ReadParameter(const Site& site, int k, Value* value);
  bool ReadAccumulator(const Site& site, int k, Value* value);
  bool ReadGradient(const Site& site, int k, Value* value);
  bool AddView(const Site& site, int k, int64_t begin, int64_t end, const Value& view,
               Value* gradient);
  bool SliceTile(const Site& site, int k, Value* value);
  bool CheckLayer(const Site& site, int layer);
  UnitState* StateOf(int stage, int unit, int layer);

  // verify_optimizer.cc
  void Unit(const Site& site);
  void InitParameters(const Site& site);
  void SumSquares(const Site& site);
  void Clip(const Site& site);
  void Adamw(const Site& site);
  void Cast(const Site& site);
  void Accumulate(const Site& site);
  bool CheckGradientIsComplete(const Site& site, const Value& gradient);
  bool CheckUnitRange(const Site& site, int k, const Value& value, const Value& gradient,
                      ValueRole role);

  // verify_collectives.cc
  void Collective(const Site& site);
  void ReduceScatter(const Site& site);
  void AllGather(const Site& site);
  void AllReduce(const std::vector<Site>& sites);
  void AllReduceTile(const std::vector<Site>& sites);
  int ReduceRun(const std::vector<Site>& sites, int64_t at);
  bool Merge(const std::vector<Site>& sites, const std::vector<Value>& values, Value* sum);
  bool Reduce(const Site& site, Value* value);
  bool SingleAxis(const Site& site, Axis* axis);

  // verify_state.cc: what must hold between programs.
  void SetInitialMoments(int stage);
  void CheckScalar(int stage, int buffer, ValueRole role, const char* name);
  void CheckUnits(bool updated);
  void CheckRepeatable();
  void CheckRecompute();
  void CheckZero();
  void CheckSchedule();
  bool SameState(int stage, int before, int after);
  std::vector<std::vector<int>> Snapshot();

  const FlatPlan& flat_;
  const Plan& plan_;
  Report& report_;
  ValueStore store_;
  ParameterTable parameters_;
  ModelFormula formula_;
  DefinitionTable definitions_;
  std::vector<Memory> memories_;                            // by stage
  std::vector<std::vector<std::vector<UnitState>>> units_;  // by stage, unit, slot
  std::vector<std::vector<int>> layer_slots_;               // by stage, layer
  std::vector<int> holders_;                                // stages, by unit
  std::vector<InFlight> in_flight_;                         // by stage
  std::vector<std::vector<Contributions>> contributions_;   // of a step, by unit, layer
  std::vector<int> range_cache_;                            // by flat operand
  std::vector<std::vector<int>> published_;                 // values after publish, by stage
  std::vector<std::vector<int>> stepped_;                   // values after a step
  std::array<AxisCodes, kMaxOperands> codes_{};             // after the instruction
  std::vector<Axis> axes_;                                  // split within a stage
  ProgramKind program_ = ProgramKind::kInit;
  // Which function of tokens and weights the program's loss is, over its microbatches.
  uint64_t loss_function_ = 0;
  uint64_t rope_table_ = 0;  // its hash
  // Operations of the forward pass that the program does again: products, and others.
  int64_t repeated_products_ = 0;
  int64_t repeated_others_ = 0;
  bool repeats_ = false;  // the instruction does
  uint64_t step_loss_function_ = 0;
  int64_t layers_ = 0;
};

}  // namespace planc::verifying

#endif  // PLANC_SCHEMAS_VERIFY_EXECUTE_H_
