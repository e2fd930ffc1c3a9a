// Blocks that bring data in: tokens and targets from the data loader, activations and their
// gradients from the neighbouring pipeline stages. Each direction has its own stream, so that
// transfers overlap compute.
#include "compiler/graph/block_builder.h"
#include "compiler/passes/passes.h"
#include "schemas/status.h"

namespace planc {

absl::Status InsertTransfers(StepGraph& graph) {
  const ValueId tokens = graph.named.at("tokens");
  const ValueId targets = graph.named.at("targets");
  const int64_t rows = graph.dims.tokens;
  PLANC_RETURN_IF_ERROR(EmitOne(graph, "load_tokens", Label::kData, Stream::kCompute,
                                Opcode::kLoadTokens, {tokens}, {rows}));
  PLANC_RETURN_IF_ERROR(EmitOne(graph, "load_targets", Label::kData, Stream::kCompute,
                                Opcode::kLoadTargets, {targets}, {rows}));
  if (!graph.Split(Axis::kPp)) return absl::OkStatus();
  const ValueId in = graph.named.at("x.in");
  const ValueId out = graph.named.at("x.out");
  const ValueId dx = graph.named.at("dx");
  const int64_t count = LocalElements(graph, in);
  PLANC_RETURN_IF_ERROR(EmitOne(graph, "send_forward", Label::kPipeline, Stream::kSendNext,
                                Opcode::kSend, {in}, {count, 1}, {}, "pp"));
  PLANC_RETURN_IF_ERROR(EmitOne(graph, "recv_forward", Label::kPipeline, Stream::kRecvPrevious,
                                Opcode::kRecv, {out}, {count, -1}, {}, "pp"));
  PLANC_RETURN_IF_ERROR(EmitOne(graph, "send_backward", Label::kPipeline, Stream::kSendPrevious,
                                Opcode::kSend, {dx}, {count, -1}, {}, "pp"));
  return EmitOne(graph, "recv_backward", Label::kPipeline, Stream::kRecvNext, Opcode::kRecv, {dx},
                 {count, 1}, {}, "pp");
}

}  // namespace planc
