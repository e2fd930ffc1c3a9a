#include "compiler/mesh/pipeline_schedule.h"

#include <algorithm>

namespace planc {
namespace {

// The i-th chunk forward (or backward) of an interleaved schedule: p microbatches through each
// chunk before the next chunk, then the next p microbatches.
PipelineAction Interleaved(const PipelineShape& shape, int index, bool forward) {
  const int group = shape.stages * shape.chunks;
  const int within = index % group;
  const int chunk = within / shape.stages;
  const int microbatch = index / group * shape.stages + within % shape.stages;
  return {forward, forward ? chunk : shape.chunks - 1 - chunk, microbatch};
}

PipelineAction ActionAt(const PipelineShape& shape, int index, bool forward) {
  if (shape.chunks == 1) return {forward, 0, index};
  return Interleaved(shape, index, forward);
}

int WarmUp(const PipelineShape& shape, int stage) {
  const int total = shape.microbatches * shape.chunks;
  const int behind = shape.stages - stage - 1;
  switch (shape.schedule) {
    case proto::GPIPE:
      return total;
    case proto::INTERLEAVED_1F1B:
      return std::min(total, 2 * behind + (shape.chunks - 1) * shape.stages);
    default:
      return std::min(total, behind);
  }
}

}  // namespace

std::vector<PipelineAction> PipelineOrder(const PipelineShape& shape, int stage) {
  const int total = shape.microbatches * shape.chunks;
  const int warm_up = WarmUp(shape, stage);
  std::vector<PipelineAction> order;
  order.reserve(2 * total);
  for (int i = 0; i < warm_up; ++i) order.push_back(ActionAt(shape, i, true));
  for (int i = warm_up; i < total; ++i) {
    order.push_back(ActionAt(shape, i, true));
    order.push_back(ActionAt(shape, i - warm_up, false));
  }
  for (int i = total - warm_up; i < total; ++i) order.push_back(ActionAt(shape, i, false));
  return order;
}

std::vector<PipelineAction> ForwardOrder(const PipelineShape& shape, int stage) {
  std::vector<PipelineAction> order = PipelineOrder(shape, stage);
  order.erase(std::remove_if(order.begin(), order.end(),
                             [](const PipelineAction& action) { return !action.forward; }),
              order.end());
  return order;
}

ScheduleTiming SimulateSchedule(const PipelineShape& shape, double forward, double backward) {
  const int p = shape.stages;
  const int last = p * shape.chunks - 1;  // last virtual stage
  const double share = 1.0 / shape.chunks;
  std::vector<std::vector<PipelineAction>> order;
  for (int s = 0; s < p; ++s) order.push_back(PipelineOrder(shape, s));
  // Completion time of each (virtual stage, microbatch), -1 while it has not run.
  const std::vector<double> unset(shape.microbatches, -1);
  std::vector<std::vector<double>> forward_done(last + 1, unset);
  std::vector<std::vector<double>> backward_done(last + 1, unset);
  ScheduleTiming timing{0, std::vector<std::vector<double>>(p), std::vector<double>(p, 0)};
  std::vector<double> free_at(p, 0);
  std::vector<double> held(p, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < p; ++s) {
      while (timing.start[s].size() < order[s].size()) {
        const PipelineAction& a = order[s][timing.start[s].size()];
        const int vs = a.chunk * p + s;
        double ready = 0;
        if (a.forward) {
          if (vs > 0) ready = forward_done[vs - 1][a.microbatch];
        } else {
          ready = vs < last ? backward_done[vs + 1][a.microbatch] : forward_done[vs][a.microbatch];
        }
        if (ready < 0) break;
        const double start = std::max(free_at[s], ready);
        free_at[s] = start + (a.forward ? forward : backward) * share;
        (a.forward ? forward_done : backward_done)[vs][a.microbatch] = free_at[s];
        if (a.forward) timing.peak[s] = std::max(timing.peak[s], held[s] + share);
        held[s] += a.forward ? share : -share;
        timing.start[s].push_back(start);
        timing.makespan = std::max(timing.makespan, free_at[s]);
        moved = true;
      }
    }
  }
  return timing;
}

}  // namespace planc
