#include "kernels/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/reference_activation.h"
#include "kernels/test_data.h"

namespace planc::host {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Shape {
  int64_t tokens;
  int64_t ffn;
};
const Shape kShapes[] = {{1, 1}, {3, 33}, {17, 40}, {9, 257}};

TEST(SwiGlu, MatchesTheReference) {
  for (DType dtype : ElementTypes()) {
    for (const auto [tokens, ffn] : kShapes) {
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " " << tokens << " x " << ffn);
      const Operand gate_up = Operand::Random(dtype, tokens * 2 * ffn, 1, 2);
      const Operand ds = Operand::Random(dtype, tokens * ffn, 2);
      Operand s(dtype, tokens * ffn), dgate_up(dtype, tokens * 2 * ffn);
      TestContext context(2);
      SwiGluForward({.tokens = tokens, .ffn = ffn, .gate_up = gate_up.data(), .s = s.data()}, dtype,
                    context.get());
      SwiGluBackward({.tokens = tokens,
                      .ffn = ffn,
                      .gate_up = gate_up.data(),
                      .ds = ds.data(),
                      .dgate_up = dgate_up.data()},
                     dtype, context.get());
      const std::vector<double> in = gate_up.Values(), upstream = ds.Values();
      std::vector<double> s_expected(tokens * ffn), d_expected(tokens * 2 * ffn);
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t i = 0; i < ffn; ++i) {
          const int64_t gate = t * 2 * ffn + i, up = gate + ffn;
          s_expected[t * ffn + i] = reference::SwiGlu(in[gate], in[up]);
          reference::SwiGluBackward(in[gate], in[up], upstream[t * ffn + i], &d_expected[gate],
                                    &d_expected[up]);
        }
      }
      ExpectClose(s, s_expected, "s");
      ExpectClose(dgate_up, d_expected, "dgate_up");
    }
  }
}

TEST(Gelu, MatchesTheReference) {
  for (DType dtype : ElementTypes()) {
    for (int64_t elements : {5, 31, 64, 1000, 40001}) {
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " " << elements);
      const Operand x = Operand::Random(dtype, elements, 1, 2);
      const Operand dy = Operand::Random(dtype, elements, 2);
      Operand y(dtype, elements), dx(dtype, elements);
      TestContext context(2);
      GeluForward({.elements = elements, .x = x.data(), .y = y.data()}, dtype, context.get());
      GeluBackward({.elements = elements, .x = x.data(), .dy = dy.data(), .dx = dx.data()}, dtype,
                   context.get());
      std::vector<double> y_expected, dx_expected;
      const std::vector<double> in = x.Values(), upstream = dy.Values();
      for (int64_t i = 0; i < elements; ++i) {
        y_expected.push_back(reference::Gelu(in[i]));
        dx_expected.push_back(reference::GeluBackward(in[i], upstream[i]));
      }
      ExpectClose(y, y_expected, "y");
      ExpectClose(dx, dx_expected, "dx");
    }
  }
}

TEST(Activations, ReferenceGradientsAreDerivatives) {
  const std::vector<double> x = RandomValues(6, 1, 2);
  std::vector<double> gelu_gradient, gate_gradient(3), up_gradient(3), swiglu_gradient;
  for (double value : x) gelu_gradient.push_back(reference::GeluBackward(value, 1.5));
  const auto gelu = [](const std::vector<double>& at) {
    double sum = 0;
    for (double value : at) sum += 1.5 * reference::Gelu(value);
    return sum;
  };
  ExpectGradient(gelu, x, gelu_gradient, "gelu");
  for (int i = 0; i < 3; ++i) {
    reference::SwiGluBackward(x[i], x[3 + i], 0.7, &gate_gradient[i], &up_gradient[i]);
  }
  swiglu_gradient = gate_gradient;
  swiglu_gradient.insert(swiglu_gradient.end(), up_gradient.begin(), up_gradient.end());
  const auto swiglu = [](const std::vector<double>& at) {
    double sum = 0;
    for (int i = 0; i < 3; ++i) sum += 0.7 * reference::SwiGlu(at[i], at[3 + i]);
    return sum;
  };
  ExpectGradient(swiglu, x, swiglu_gradient, "swiglu");
}

TEST(Activations, AreFiniteAtTheEdgesOfTheRange) {
  const std::vector<double> edges = {-3e38, -1e20, -200, -1e-40, -0.0, 0.0, 1e-40, 200, 1e20, 3e38};
  const int64_t n = static_cast<int64_t>(edges.size());
  const Operand x(DType::kF32, edges), ones(DType::kF32, std::vector<double>(n, 1.0));
  Operand y(DType::kF32, n), dx(DType::kF32, n);
  TestContext context;
  GeluForward({.elements = n, .x = x.data(), .y = y.data()}, DType::kF32, context.get());
  GeluBackward({.elements = n, .x = x.data(), .dy = ones.data(), .dx = dx.data()}, DType::kF32,
               context.get());
  for (int64_t i = 0; i < n; ++i) {
    const double expected = edges[i] > 100 ? edges[i] : 0;
    EXPECT_NEAR(y.Values()[i], expected, std::fabs(expected) * 1e-7 + 1e-39) << edges[i];
    const double slope = edges[i] > 100 ? 1 : edges[i] < -100 ? 0 : 0.5;
    EXPECT_NEAR(dx.Values()[i], slope, 1e-7) << edges[i];
    const Operand gate_up(DType::kF32, std::vector<double>{edges[i], 1.0});
    Operand s(DType::kF32, 1), dgate_up(DType::kF32, 2);
    SwiGluForward({.tokens = 1, .ffn = 1, .gate_up = gate_up.data(), .s = s.data()}, DType::kF32,
                  context.get());
    SwiGluBackward({.tokens = 1,
                    .ffn = 1,
                    .gate_up = gate_up.data(),
                    .ds = ones.data(),
                    .dgate_up = dgate_up.data()},
                   DType::kF32, context.get());
    EXPECT_NEAR(s.Values()[0], expected, std::fabs(expected) * 1e-7 + 1e-39) << edges[i];
    EXPECT_NEAR(dgate_up.Values()[0], slope, 1e-7) << edges[i];
  }
}

TEST(Activations, PropagateNaN) {
  const Operand x(DType::kBF16, std::vector<double>{std::nan(""), 1.0});
  Operand y(DType::kBF16, 2), dx(DType::kBF16, 2), s(DType::kBF16, 1);
  TestContext context;
  GeluForward({.elements = 2, .x = x.data(), .y = y.data()}, DType::kBF16, context.get());
  GeluBackward({.elements = 2, .x = x.data(), .dy = x.data(), .dx = dx.data()}, DType::kBF16,
               context.get());
  SwiGluForward({.tokens = 1, .ffn = 1, .gate_up = x.data(), .s = s.data()}, DType::kBF16,
                context.get());
  EXPECT_TRUE(std::isnan(y.Values()[0]) && std::isnan(dx.Values()[0]));
  EXPECT_TRUE(std::isfinite(y.Values()[1]) && std::isfinite(dx.Values()[1]));
  EXPECT_TRUE(std::isnan(s.Values()[0]));
  const Operand infinite(DType::kF32, std::vector<double>{kInfinity});
  Operand out(DType::kF32, 1);
  GeluForward({.elements = 1, .x = infinite.data(), .y = out.data()}, DType::kF32, context.get());
  EXPECT_EQ(out.Values()[0], kInfinity);
}

}  // namespace
}  // namespace planc::host
