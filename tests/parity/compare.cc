#include "tests/parity/compare.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/file_system.h"
#include "runtime/checkpoint/huggingface/import.h"

namespace planc {
namespace {

// A key bias adds the same to all logits of a row: its true gradient is 0. What is left of it is
// measured against the gradient of the value bias beside it.
std::string ScaleName(const std::string& name) {
  return absl::StrReplaceAll(name,
                             {{"k_proj.bias", "v_proj.bias"}, {"attn.k.bias", "attn.v.bias"}});
}

void Raise(double distance, const std::string& tensor, TensorDistance* worst) {
  if (!(distance > worst->distance)) {
    if (!std::isnan(distance)) return;
    distance = std::numeric_limits<double>::infinity();
  }
  *worst = {distance, tensor};
}

// The derivation of the bounds. Rounding to p bits is off by at most 2^-p, relatively, and by
// sqrt(1 / (8 ln 2)) 2^-p = 0.425 2^-p in the root mean square over numbers whose logarithms are
// spread evenly; p is 8 for bf16 and 24 for fp32. Errors of different roundings are independent.
// Where values are passed on at about their size, n roundings on the way leave sqrt(n) times the
// error of one: a random walk.
//
// Every instruction rounds what it writes, and bf16 rounds every weight once:
struct Roundings {
  const char* family;
  int forward;   // activations that a layer writes: norm, q k v, rotary embedding, attention, ...
  int weights;   // tensors of weights that it reads
  int backward;  // gradients of activations that it writes
};
constexpr Roundings kRoundings[] = {
    {"llama", 11, 6, 9},
    {"qwen2", 12, 7, 9},   // a bias
    {"qwen3", 12, 8, 10},  // norms of heads
    {"gpt2", 14, 12, 8},   // biases everywhere, no rotary embedding
};
// Embedding, final norm, its weights, those of the logits, the logits; and back to the last layer.
constexpr int kForwardEnds = 5;
constexpr int kBackwardEnds = 3;
// In fp32 the sum behind a value rounds more than the value: of its 32 to 259 terms each of eight
// or more lanes adds 4 to 32, half of whose roundings count, and then the lanes are added.
constexpr int kSumRoundings = 8;
constexpr double kRmsRounding = 0.425;
constexpr int kLayers = 4;

double MeanLoss(const ParityReference& reference) {
  double sum = 0;
  for (double loss : reference.losses) sum += loss;
  return sum / static_cast<double>(reference.losses.size());
}

// The first step of AdamW (arXiv 1711.05101) on clipped gradients: both moments, corrected for
// their bias, are those of one gradient. Biases and norms do not decay.
struct Update {
  std::vector<float> change;
  double scale = 0;  // norm of the gradient's part and of the decay's, which may cancel
};

Update FirstUpdate(const std::vector<float>& weights, const std::vector<float>& gradient,
                   double coefficient, bool decays) {
  const ParityOptimizer optimizer;
  const double decay = decays ? optimizer.weight_decay : 0;
  Update update;
  double squares[2] = {};
  for (size_t i = 0; i < weights.size(); ++i) {
    const double g = gradient[i] * coefficient;
    const double parts[2] = {optimizer.lr * g / (std::abs(g) + optimizer.epsilon),
                             optimizer.lr * decay * weights[i]};
    update.change.push_back(static_cast<float>(-(parts[0] + parts[1])));
    for (int part = 0; part < 2; ++part) squares[part] += parts[part] * parts[part];
  }
  update.scale = std::sqrt(squares[0]) + std::sqrt(squares[1]);
  return update;
}

// What clipping multiplies the gradients with.
double Coefficient(const ParityReference& reference) {
  return std::min(1.0, ParityOptimizer().clip_norm / reference.grad_norm);
}

bool Decays(const std::string& name) {
  return !absl::StrContains(name, "bias") && !absl::StrContains(name, "norm") &&
         !absl::StrContains(name, "ln_");
}

}  // namespace

void ImportFixture(const ParityCase& one, const Plan& plan, const std::string& checkpoint) {
  std::filesystem::remove_all(checkpoint);
  const auto imported =
      ImportFolder(FixtureFolder(one.family), plan, {}, checkpoint, HostFileSystem());
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_TRUE(imported->problems.empty()) << imported->problems.front();
}

MeshRun RunParityCase(const ParityCase& one, const Plan& plan) {
  host::UseVectorsOf(one.instruction_set);
  return RunMesh(plan, 1, "", {one.instruction_set, plan.mesh.WorldSize() == 1});
}

Tensors ExpectedChanges(const ParityReference& reference) {
  Tensors changes;
  for (const auto& [name, gradient] : reference.gradients) {
    changes[name] =
        FirstUpdate(reference.weights.at(name), gradient, Coefficient(reference), Decays(name))
            .change;
  }
  return changes;
}

Distances DistancesBetween(const MeshRun& run, const ParityReference& reference) {
  Distances distances;
  distances.loss = std::abs(run.losses[0] - MeanLoss(reference));
  if (!run.token_losses.empty()) {
    distances.token_losses = TokenDistance(run.token_losses, reference.losses);
  }
  distances.grad_norm = std::abs(run.grad_norms[0] / reference.grad_norm - 1);
  const double coefficient = Coefficient(reference);
  const Tensors changes = ExpectedChanges(reference);
  double squares = 0;
  EXPECT_EQ(run.first_gradients.size(), reference.gradients.size());
  for (const auto& [name, theirs] : reference.gradients) {
    const auto ours = run.first_gradients.find(name);
    if (ours == run.first_gradients.end() || ours->second.size() != theirs.size()) {
      ADD_FAILURE() << name << " is missing, or has another shape";
      continue;
    }
    std::vector<float> clipped = theirs;
    for (float& value : clipped) value = static_cast<float>(value * coefficient);
    const double scale = Norm(reference.gradients.at(ScaleName(name))) * coefficient;
    EXPECT_GT(scale, 0) << name;
    squares += std::pow(Norm(ours->second), 2);
    Raise(Distance(ours->second, clipped) / scale, name, &distances.gradients);

    const std::vector<float>& before = reference.weights.at(name);
    const Update scales =
        FirstUpdate(before, reference.gradients.at(ScaleName(name)), coefficient, Decays(name));
    std::vector<float> change = run.weights.at(name);
    // Less what the last bit of the new weights may be off.
    const double last_bit = std::ldexp(Norm(change), -24);
    for (size_t i = 0; i < change.size(); ++i) change[i] -= before[i];
    const double off = std::max(0.0, Distance(change, changes.at(name)) - last_bit);
    Raise(off / scales.scale, name, &distances.updates);
  }
  distances.clipped_norm = std::abs(std::sqrt(squares) / ParityOptimizer().clip_norm - 1);
  return distances;
}

// What is measured, at most over one and eight ranks, beside the bound (avx2 / amx_bf16 < bound);
// avx512 has the bits of avx2, and fp32 has the same bits on all.
//
//   bf16             llama                 qwen2                 qwen3                 gpt2
//   loss       22 / 19 < 50 e-4      11 / 13 < 54 e-4      20 / 21 < 50 e-4      24 / 25 < 69 e-4
//   tokens     17 / 16 < 42 e-3      12 / 12 < 46 e-3      14 / 16 < 43 e-3      11 / 11 < 58 e-3
//   grad norm  28 / 13 < 180 e-4     36 / 24 < 180 e-4     46 / 24 < 190 e-4     29 / 38 < 200 e-4
//   gradients  39 / 43 < 110 e-3     37 / 37 < 110 e-3     61 / 62 < 110 e-3     37 / 36 < 120 e-3
//   updates    35 / 41 < 110 e-3     39 / 36 < 110 e-3     60 / 64 < 110 e-3     37 / 35 < 120 e-3
//
//   fp32             llama                 qwen2                 qwen3                 gpt2
//   loss         7.1 < 30 e-8          4.9 < 32 e-8          4.1 < 31 e-8          3.5 < 37 e-8
//   tokens       5.8 < 18 e-7          3.8 < 20 e-7          4.5 < 18 e-7          3.0 < 25 e-7
//   grad norm    1.3 < 7.6 e-7         0.3 < 7.8 e-7         0.4 < 8.1 e-7         0.2 < 8.6 e-7
//   gradients    1.6 < 4.5 e-6         1.2 < 4.7 e-6         2.3 < 4.9 e-6         1.5 < 5.2 e-6
//   updates      1.3 < 4.5 e-6         1.0 < 4.7 e-6         1.0 < 4.9 e-6         0.6 < 5.2 e-6
Distances BoundsOf(const ParityCase& one, const ParityReference& reference) {
  const bool exact = one.precision == "fp32";
  const auto* n = std::find_if(std::begin(kRoundings), std::end(kRoundings),
                               [&](const Roundings& row) { return row.family == one.family; });
  const double fp32 = kRmsRounding * std::ldexp(1.0, -24);
  const double rounding =
      exact ? std::sqrt(kSumRoundings) * fp32 : kRmsRounding * std::ldexp(1.0, -8);
  const int forward = kLayers * (n->forward + n->weights) + kForwardEnds;
  const int backward = kLayers * n->backward + kBackwardEnds;
  const double logits = rounding * std::sqrt(forward) * reference.logit_deviation;
  const double gradients = rounding * std::sqrt(forward + backward);
  Distances bounds;
  // A token's loss is off by the error of its target's logit, less the mean error of all logits.
  // The factor is for what passes an error on enlarged: attention and SwiGLU multiply two values
  // that are both off.
  bounds.token_losses = 3 * logits;
  // The mean of independent errors, within 4 deviations. The loss of each of 8 microbatches is one
  // number in fp32.
  const double tokens = static_cast<double>(reference.losses.size());
  bounds.loss =
      4 * std::hypot(logits / std::sqrt(tokens), fp32 * MeanLoss(reference) / std::sqrt(8));
  // Enlarged likewise, for the worst of about 50 tensors. The gradients of norms and biases are
  // sums over all tokens that cancel in part; hence twice as much. A step is the gradient over
  // something larger, and an exact decay.
  bounds.gradients.distance = 6 * gradients;
  bounds.updates.distance = 6 * gradients;
  // A norm is off by no more than the distance of all tensors together, and those errors that are
  // at a right angle to the gradient do not count.
  bounds.grad_norm = gradients;
  // In fp32 also where the model computes in bf16: the coefficient, its product with the gradient
  // and the first moment are rounded; clip_norm / (norm + 1e-6) is off by 1e-6 / norm.
  bounds.clipped_norm = std::ldexp(4.0, -24) + 1e-6 / reference.grad_norm;
  return bounds;
}

Distances Excess(const Distances& distances, const Distances& bounds) {
  const auto ratio = [](double distance, double bound) {
    return std::isfinite(distance) ? distance / bound : std::numeric_limits<double>::infinity();
  };
  Distances excess;
  excess.loss = ratio(distances.loss, bounds.loss);
  excess.token_losses = ratio(distances.token_losses, bounds.token_losses);
  excess.grad_norm = ratio(distances.grad_norm, bounds.grad_norm);
  excess.clipped_norm = ratio(distances.clipped_norm, bounds.clipped_norm);
  excess.gradients = {ratio(distances.gradients.distance, bounds.gradients.distance),
                      distances.gradients.tensor};
  excess.updates = {ratio(distances.updates.distance, bounds.updates.distance),
                    distances.updates.tensor};
  return excess;
}

double Largest(const Distances& excess) {
  return std::max({excess.loss, excess.token_losses, excess.grad_norm, excess.clipped_norm,
                   excess.gradients.distance, excess.updates.distance});
}

double TokenDistance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

}  // namespace planc
