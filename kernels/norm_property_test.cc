#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/norm.h"
#include "kernels/property_test.h"
#include "kernels/reference_norm.h"

namespace planc::host {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Enough elements or rows for several threads in every sixteenth case.
int64_t Rows(RandomCase& random, int64_t columns) {
  if (random.Chance(0.0625)) return 3 * 16384 / columns + random.Between(1, 40);
  return random.Size(70);
}

float Epsilon(RandomCase& random) { return random.Chance(0.5) ? 1e-5f : 1e-6f; }

// Adds the rows' shares to the gradient of a weight, and compares.
void ExpectWeightGradient(const StridedOperand& actual, const StridedOperand& before,
                          const std::vector<Bounded>& share, const std::string& what) {
  std::vector<Bounded> expected = Exactly(before.Values());
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += share[i];
  ExpectAgrees(actual, expected, what);
}

// What the backward pass leaves in dx, given its value before.
std::vector<Bounded> Gradient(bool accumulate, const StridedOperand& before,
                              std::vector<Bounded> dx) {
  const std::vector<double> old = before.Values();
  for (size_t i = 0; accumulate && i < dx.size(); ++i) dx[i] += old[i];
  return dx;
}

// RMSNorm over every head of every row; one head stands for RMSNorm itself.
struct RmsProblem {
  RmsProblem(RandomCase& random, int64_t heads_in, int64_t dim_in, ValueKind kind)
      : heads(heads_in),
        dim(dim_in),
        tokens(Rows(random, heads_in * dim_in)),
        dtype(random.ElementType()),
        strided(heads_in > 1),
        epsilon(Epsilon(random)),
        accumulate(random.Chance(0.5)),
        x(random.Matrix(dtype, tokens, heads * dim, kind, strided)),
        weight(random.Vector(dtype, dim, ValueKind::kNormal)),
        dy(random.Matrix(dtype, tokens, heads * dim,
                         kind == ValueKind::kNonFinite ? kind : ValueKind::kNormal, strided)),
        y(random.Matrix(dtype, tokens, heads * dim, ValueKind::kNormal, strided)),
        rstd(DType::kF32, tokens, heads),
        dx(random.Matrix(dtype, tokens, heads * dim, ValueKind::kNormal, strided)),
        dweight(random.Vector(random.ElementType(), dim, ValueKind::kNormal)) {}

  HeadNormForwardArgs Forward() {
    return {.tokens = tokens,
            .heads = heads,
            .head_dim = dim,
            .epsilon = epsilon,
            .x = x.base_data(),
            .x_stride = x.stride(),
            .x_column = x.lead(),
            .weight = weight.data(),
            .y = y.base_data(),
            .y_stride = y.stride(),
            .y_column = y.lead(),
            .rstd = rstd.floats()};
  }
  HeadNormBackwardArgs Backward() {
    return {.tokens = tokens,
            .heads = heads,
            .head_dim = dim,
            .dy = dy.base_data(),
            .dy_stride = dy.stride(),
            .dy_column = dy.lead(),
            .x = x.base_data(),
            .x_stride = x.stride(),
            .x_column = x.lead(),
            .weight = weight.data(),
            .rstd = rstd.floats(),
            .dx = dx.base_data(),
            .dx_stride = dx.stride(),
            .dx_column = dx.lead(),
            .accumulate_dx = accumulate,
            .dweight = dweight.data(),
            .dweight_dtype = dweight.dtype()};
  }

  // Compares y and rstd.
  void CheckForward() const {
    const std::vector<Bounded> xs = Exactly(x.Values()), weights = Exactly(weight.Values());
    std::vector<Bounded> ys(xs.size()), rstds(tokens * heads);
    for (int64_t i = 0; i < tokens * heads; ++i) {
      rstds[i] =
          reference::RmsNormRow<Bounded>(&xs[i * dim], weights.data(), dim, epsilon, &ys[i * dim]);
    }
    ExpectAgrees(rstd, rstds, "rstd");
    ExpectAgrees(y, ys, "y");
  }

  // Compares dx and dweight, from the statistics that the kernel was given.
  void CheckBackward(const StridedOperand& dx_before, const StridedOperand& dweight_before) const {
    const std::vector<Bounded> xs = Exactly(x.Values()), weights = Exactly(weight.Values());
    const std::vector<Bounded> dys = Exactly(dy.Values()), rstds = Exactly(rstd.Values());
    std::vector<Bounded> dxs(xs.size()), share(dim);
    for (int64_t i = 0; i < tokens * heads; ++i) {
      reference::RmsNormRowBackward<Bounded>(&dys[i * dim], &xs[i * dim], weights.data(), dim,
                                             rstds[i], &dxs[i * dim], share.data());
      // The squares of the row overflowed. So may the sum that its gradient needs, which is
      // multiplied by rstd last.
      if (rstds[i].value() == 0) std::fill_n(&dxs[i * dim], dim, Bounded::Unknown());
    }
    ExpectAgrees(dx, Gradient(accumulate, dx_before, dxs), "dx");
    ExpectWeightGradient(dweight, dweight_before, share, "dweight");
  }

  int64_t heads, dim, tokens;
  DType dtype;
  bool strided;
  float epsilon;
  bool accumulate;
  StridedOperand x, weight, dy, y, rstd, dx, dweight;
};

TEST(RmsNormProperty, AgreesWithTheReference) {
  ForEachCase(100, 200, [](RandomCase& random) {
    RmsProblem p(random, 1, random.Size(300), random.Kind());
    const RmsNormForwardArgs forward = {.tokens = p.tokens,
                                        .hidden = p.dim,
                                        .epsilon = p.epsilon,
                                        .x = p.x.data(),
                                        .weight = p.weight.data(),
                                        .y = p.y.data(),
                                        .rstd = p.rstd.floats()};
    ExpectReproducible({&p.y, &p.rstd},
                       [&](KernelContext& context) { RmsNormForward(forward, p.dtype, context); });
    p.CheckForward();
    const RmsNormBackwardArgs backward = {.tokens = p.tokens,
                                          .hidden = p.dim,
                                          .dy = p.dy.data(),
                                          .x = p.x.data(),
                                          .weight = p.weight.data(),
                                          .rstd = p.rstd.floats(),
                                          .dx = p.dx.data(),
                                          .accumulate_dx = p.accumulate,
                                          .dweight = p.dweight.data(),
                                          .dweight_dtype = p.dweight.dtype()};
    const StridedOperand dx_before = p.dx, dweight_before = p.dweight;
    ExpectReproducible(
        {&p.dx, &p.dweight}, [&](int) { return RmsNormBackwardWorkspaceBytes(p.tokens, p.dim); },
        [&](KernelContext& context) { RmsNormBackward(backward, p.dtype, context); });
    p.CheckBackward(dx_before, dweight_before);
  });
}

TEST(HeadNormProperty, AgreesWithTheReference) {
  ForEachCase(1000, 200, [](RandomCase& random) {
    RmsProblem p(random, random.Between(1, 5), random.Size(130), random.Kind());
    ExpectReproducible({&p.y, &p.rstd}, [&](KernelContext& context) {
      HeadNormForward(p.Forward(), p.dtype, context);
    });
    p.CheckForward();
    const StridedOperand dx_before = p.dx, dweight_before = p.dweight;
    ExpectReproducible(
        {&p.dx, &p.dweight},
        [&](int) { return HeadNormBackwardWorkspaceBytes(p.tokens, p.heads, p.dim); },
        [&](KernelContext& context) { HeadNormBackward(p.Backward(), p.dtype, context); });
    p.CheckBackward(dx_before, dweight_before);
  });
}

TEST(HeadNormProperty, InPlaceHasTheSameBits) {
  ForEachCase(2000, 100, [](RandomCase& random) {
    RmsProblem p(random, random.Between(1, 4), random.Size(130), random.Kind());
    p.accumulate = false;
    StridedOperand over_x = p.x, over_dy = p.dy;
    ExpectReproducible({&p.y, &p.rstd}, [&](KernelContext& context) {
      HeadNormForward(p.Forward(), p.dtype, context);
    });
    const auto bytes = [&](int) {
      return HeadNormBackwardWorkspaceBytes(p.tokens, p.heads, p.dim);
    };
    ExpectReproducible({&p.dx}, bytes, [&](KernelContext& context) {
      HeadNormBackward(p.Backward(), p.dtype, context);
    });
    HeadNormForwardArgs forward = p.Forward();
    forward.x = forward.y = over_x.base_data();
    forward.y_stride = forward.x_stride;
    forward.y_column = forward.x_column;
    ExpectReproducible({&over_x},
                       [&](KernelContext& context) { HeadNormForward(forward, p.dtype, context); });
    HeadNormBackwardArgs backward = p.Backward();
    backward.dy = backward.dx = over_dy.base_data();
    backward.dx_stride = backward.dy_stride;
    backward.dx_column = backward.dy_column;
    ExpectReproducible({&over_dy}, bytes, [&](KernelContext& context) {
      HeadNormBackward(backward, p.dtype, context);
    });
    const auto floats = [](const StridedOperand& operand) {
      const std::vector<double> values = operand.Values();
      return std::vector<float>(values.begin(), values.end());
    };
    ExpectEquals(over_x, floats(p.y), "y over x");
    ExpectEquals(over_dy, floats(p.dx), "dx over dy");
  });
}

struct LayerProblem {
  explicit LayerProblem(RandomCase& random)
      : hidden(random.Size(300)),
        tokens(Rows(random, hidden)),
        dtype(random.ElementType()),
        epsilon(Epsilon(random)),
        accumulate(random.Chance(0.5)),
        kind(random.Kind()),
        x(random.Matrix(dtype, tokens, hidden, kind)),
        weight(random.Vector(dtype, hidden, ValueKind::kNormal)),
        bias(random.Vector(dtype, hidden, ValueKind::kNormal)),
        dy(random.Matrix(dtype, tokens, hidden,
                         kind == ValueKind::kNonFinite ? kind : ValueKind::kNormal)),
        y(dtype, tokens, hidden),
        mean(DType::kF32, tokens, 1),
        rstd(DType::kF32, tokens, 1),
        dx(random.Matrix(dtype, tokens, hidden, ValueKind::kNormal)),
        dweight(random.Vector(random.ElementType(), hidden, ValueKind::kNormal)),
        dbias(random.Vector(dweight.dtype(), hidden, ValueKind::kNormal)) {}

  void Forward(KernelContext& context) {
    LayerNormForward({.tokens = tokens,
                      .hidden = hidden,
                      .epsilon = epsilon,
                      .x = x.data(),
                      .weight = weight.data(),
                      .bias = bias.data(),
                      .y = y.data(),
                      .mean = mean.floats(),
                      .rstd = rstd.floats()},
                     dtype, context);
  }
  void Backward(KernelContext& context) {
    LayerNormBackward({.tokens = tokens,
                       .hidden = hidden,
                       .dy = dy.data(),
                       .x = x.data(),
                       .weight = weight.data(),
                       .mean = mean.floats(),
                       .rstd = rstd.floats(),
                       .dx = dx.data(),
                       .accumulate_dx = accumulate,
                       .dweight = dweight.data(),
                       .dbias = dbias.data(),
                       .dweight_dtype = dweight.dtype()},
                      dtype, context);
  }

  void CheckForward() const {
    const std::vector<Bounded> xs = Exactly(x.Values()), weights = Exactly(weight.Values());
    const std::vector<Bounded> biases = Exactly(bias.Values());
    std::vector<Bounded> ys(xs.size()), means(tokens), rstds(tokens);
    for (int64_t t = 0; t < tokens; ++t) {
      reference::LayerNormRow<Bounded>(&xs[t * hidden], weights.data(), biases.data(), hidden,
                                       epsilon, &ys[t * hidden], &means[t], &rstds[t]);
    }
    ExpectAgrees(mean, means, "mean");
    ExpectAgrees(rstd, rstds, "rstd");
    ExpectAgrees(y, ys, "y");
  }
  void CheckBackward(const StridedOperand& dx_before, const StridedOperand& dweight_before,
                     const StridedOperand& dbias_before) const {
    const std::vector<Bounded> xs = Exactly(x.Values()), weights = Exactly(weight.Values());
    const std::vector<Bounded> dys = Exactly(dy.Values()), rstds = Exactly(rstd.Values());
    const std::vector<Bounded> means = Exactly(mean.Values());
    std::vector<Bounded> dxs(xs.size()), weight_share(hidden), bias_share(hidden);
    for (int64_t t = 0; t < tokens; ++t) {
      reference::LayerNormRowBackward<Bounded>(&dys[t * hidden], &xs[t * hidden], weights.data(),
                                               hidden, means[t], rstds[t], &dxs[t * hidden],
                                               weight_share.data(), bias_share.data());
    }
    ExpectAgrees(dx, Gradient(accumulate, dx_before, dxs), "dx");
    ExpectWeightGradient(dweight, dweight_before, weight_share, "dweight");
    ExpectWeightGradient(dbias, dbias_before, bias_share, "dbias");
  }

  int64_t hidden, tokens;
  DType dtype;
  float epsilon;
  bool accumulate;
  ValueKind kind;
  StridedOperand x, weight, bias, dy, y, mean, rstd, dx, dweight, dbias;
};

TEST(LayerNormProperty, AgreesWithTheReference) {
  ForEachCase(3000, 200, [](RandomCase& random) {
    LayerProblem p(random);
    ExpectReproducible({&p.y, &p.mean, &p.rstd},
                       [&](KernelContext& context) { p.Forward(context); });
    p.CheckForward();
    const StridedOperand dx_before = p.dx, dweight_before = p.dweight, dbias_before = p.dbias;
    ExpectReproducible(
        {&p.dx, &p.dweight, &p.dbias},
        [&](int) { return LayerNormBackwardWorkspaceBytes(p.tokens, p.hidden); },
        [&](KernelContext& context) { p.Backward(context); });
    p.CheckBackward(dx_before, dweight_before, dbias_before);
  });
}

// A NaN or an infinity spoils its own row, visibly, and no other.
TEST(NormProperty, NonFiniteRowsStayVisibleAndApart) {
  ForEachCase(4000, 100, [](RandomCase& random) {
    LayerProblem p(random);
    p.x = random.Matrix(p.dtype, p.tokens, p.hidden, ValueKind::kNormal);
    const int64_t row = random.Between(0, p.tokens - 1);
    const float value = random.Chance(0.5) ? kInfinity : std::numeric_limits<float>::quiet_NaN();
    p.x.Set(row, random.Between(0, p.hidden - 1), value);
    ExpectReproducible({&p.y, &p.mean, &p.rstd},
                       [&](KernelContext& context) { p.Forward(context); });
    StridedOperand y(p.dtype, p.tokens, p.hidden);
    ExpectReproducible({&y}, [&](KernelContext& context) {
      RmsNormForward({.tokens = p.tokens,
                      .hidden = p.hidden,
                      .epsilon = p.epsilon,
                      .x = p.x.data(),
                      .weight = p.weight.data(),
                      .y = y.data(),
                      .rstd = p.rstd.floats()},
                     p.dtype, context);
    });
    for (int64_t t = 0; t < p.tokens; ++t) {
      bool layer_finite = true, rms_finite = true;
      for (int64_t i = 0; i < p.hidden; ++i) {
        layer_finite = layer_finite && std::isfinite(p.y.At(t, i));
        rms_finite = rms_finite && std::isfinite(y.At(t, i));
      }
      EXPECT_EQ(layer_finite, t != row) << "LayerNorm, row " << t;
      EXPECT_EQ(rms_finite, t != row) << "RMSNorm, row " << t;
    }
  });
}

}  // namespace
}  // namespace planc::host
