#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/activation.h"
#include "kernels/property_test.h"
#include "kernels/reference_activation.h"

namespace planc::host {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kHuge = 3e38;

const double kExtremes[] = {0.0,  -0.0,  1e-45, -1e-45, 2e-38,     -2e-38,     16.0, -17.0,
                            88.0, -88.0, 89.5,  -89.5,  104.5,     -104.5,     1e5,  -1e5,
                            1e20, -1e20, kHuge, -kHuge, kInfinity, -kInfinity, kNan};

// Enough elements for several threads in every sixteenth case.
int64_t Rows(RandomCase& random, int64_t columns) {
  if (random.Chance(0.0625)) return 3 * 16384 / columns + 3;
  return random.Size(40);
}

// A value of the reference in double, and the error of fp32: a few roundings, and results of exp
// below the smallest normal number, times `size`. Beyond the largest float it is an infinity.
Bounded FromDouble(double value, double size) {
  if (std::fabs(value) > 3.5e38) return Bounded(std::copysign(kInfinity, value));
  return Bounded(value, 16 * 0x1p-24 * std::fabs(value) + 0x1p-126 * size + 0x1p-149);
}

struct SwiGluProblem {
  explicit SwiGluProblem(RandomCase& random)
      : ffn(random.Size(200)),
        tokens(Rows(random, ffn)),
        dtype(random.ElementType()),
        gate_up(random.Matrix(dtype, tokens, 2 * ffn, random.Kind())),
        ds(random.Matrix(dtype, tokens, ffn,
                         random.Chance(0.3) ? random.Kind() : ValueKind::kNormal)),
        s(dtype, tokens, ffn),
        dgate_up(dtype, tokens, 2 * ffn) {}

  void Forward(KernelContext& context) {
    SwiGluForward({.tokens = tokens, .ffn = ffn, .gate_up = gate_up.data(), .s = s.data()}, dtype,
                  context);
  }
  void Backward(void* gradient, KernelContext& context) {
    SwiGluBackward({.tokens = tokens,
                    .ffn = ffn,
                    .gate_up = gate_up.data(),
                    .ds = ds.data(),
                    .dgate_up = gradient},
                   dtype, context);
  }

  int64_t ffn, tokens;
  DType dtype;
  StridedOperand gate_up, ds, s, dgate_up;
};

TEST(SwiGluProperty, AgreesWithTheReference) {
  ForEachCase(1, 400, [](RandomCase& random) {
    SwiGluProblem p(random);
    ExpectReproducible({&p.s}, [&](KernelContext& context) { p.Forward(context); });
    ExpectReproducible({&p.dgate_up},
                       [&](KernelContext& context) { p.Backward(p.dgate_up.data(), context); });
    std::vector<Bounded> s(p.tokens * p.ffn), dgate_up(2 * p.tokens * p.ffn);
    for (int64_t t = 0; t < p.tokens; ++t) {
      for (int64_t i = 0; i < p.ffn; ++i) {
        const Bounded gate = p.gate_up.At(t, i), up = p.gate_up.At(t, p.ffn + i);
        s[t * p.ffn + i] = reference::SwiGlu<Bounded>(gate, up);
        Bounded* at = &dgate_up[2 * t * p.ffn + i];
        reference::SwiGluBackward<Bounded>(gate, up, p.ds.At(t, i), at, at + p.ffn);
      }
    }
    ExpectAgrees(p.s, s, "s");
    ExpectAgrees(p.dgate_up, dgate_up, "dgate_up");
  });
}

TEST(SwiGluProperty, InPlaceHasTheSameBits) {
  ForEachCase(1000, 100, [](RandomCase& random) {
    SwiGluProblem p(random);
    ExpectReproducible({&p.dgate_up},
                       [&](KernelContext& context) { p.Backward(p.dgate_up.data(), context); });
    const std::vector<double> values = p.dgate_up.Values();
    ExpectReproducible({&p.gate_up},
                       [&](KernelContext& context) { p.Backward(p.gate_up.data(), context); });
    ExpectEquals(p.gate_up, std::vector<float>(values.begin(), values.end()), "in place");
  });
}

TEST(SwiGluProperty, ExtremeGates) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (double up_value : {1.0, -2.0, 0.0, kHuge, kInfinity, kNan}) {
      const int64_t n = std::size(kExtremes);
      StridedOperand gate_up(dtype, 1, 2 * n), ds(dtype, 1, n), s(dtype, 1, n);
      StridedOperand dgate_up(dtype, 1, 2 * n);
      for (int64_t i = 0; i < n; ++i) {
        gate_up.Set(0, i, kExtremes[i]);
        gate_up.Set(0, n + i, up_value);
        ds.Set(0, i, 0.75);
      }
      ExpectReproducible({&s}, [&](KernelContext& context) {
        SwiGluForward({.tokens = 1, .ffn = n, .gate_up = gate_up.data(), .s = s.data()}, dtype,
                      context);
      });
      ExpectReproducible({&dgate_up}, [&](KernelContext& context) {
        SwiGluBackward({.tokens = 1,
                        .ffn = n,
                        .gate_up = gate_up.data(),
                        .ds = ds.data(),
                        .dgate_up = dgate_up.data()},
                       dtype, context);
      });
      std::vector<Bounded> forward(n), backward(2 * n);
      for (int64_t i = 0; i < n; ++i) {
        const double gate = gate_up.At(0, i), up = gate_up.At(0, n + i);
        double dgate, dup;
        reference::SwiGluBackward<double>(gate, up, 0.75, &dgate, &dup);
        backward[n + i] = FromDouble(dup, std::isfinite(gate) ? std::fabs(gate) : 0);
        if (!std::isfinite(up)) {
          // Whether it becomes an infinity or a NaN is a matter of what underflows.
          EXPECT_FALSE(std::isfinite(s.At(0, i))) << gate;
          EXPECT_FALSE(std::isfinite(dgate_up.At(0, i))) << gate;
          forward[i] = backward[i] = Bounded::Unknown();
          continue;
        }
        const double size = std::isfinite(gate) ? std::fabs(gate * up) + std::fabs(up) : 0;
        forward[i] = FromDouble(reference::SwiGlu<double>(gate, up), size);
        backward[i] = FromDouble(dgate, size);
      }
      const std::string what = testing::PrintToString(up_value);
      ExpectAgrees(s, forward, "s with up = " + what);
      ExpectAgrees(dgate_up, backward, "dgate_up with up = " + what);
    }
  }
}

struct GeluProblem {
  explicit GeluProblem(RandomCase& random)
      : elements(random.Chance(0.0625) ? 3 * 16384 + random.Size(200) : random.Size(300)),
        dtype(random.ElementType()),
        x(random.Vector(dtype, elements, random.Kind())),
        dy(random.Vector(dtype, elements, random.Chance(0.3) ? random.Kind() : ValueKind::kNormal)),
        y(dtype, 1, elements),
        dx(dtype, 1, elements) {}

  void Forward(void* to, KernelContext& context) {
    GeluForward({.elements = elements, .x = x.data(), .y = to}, dtype, context);
  }
  void Backward(void* to, KernelContext& context) {
    GeluBackward({.elements = elements, .x = x.data(), .dy = dy.data(), .dx = to}, dtype, context);
  }

  int64_t elements;
  DType dtype;
  StridedOperand x, dy, y, dx;
};

TEST(GeluProperty, AgreesWithTheReference) {
  ForEachCase(2000, 400, [](RandomCase& random) {
    GeluProblem p(random);
    ExpectReproducible({&p.y}, [&](KernelContext& context) { p.Forward(p.y.data(), context); });
    ExpectReproducible({&p.dx}, [&](KernelContext& context) { p.Backward(p.dx.data(), context); });
    std::vector<Bounded> y(p.elements), dx(p.elements);
    for (int64_t i = 0; i < p.elements; ++i) {
      const double x = p.x.At(0, i);
      y[i] = reference::Gelu<Bounded>(x);
      // Infinities have a test of their own.
      dx[i] =
          std::isinf(x) ? Bounded::Unknown() : reference::GeluBackward<Bounded>(x, p.dy.At(0, i));
    }
    ExpectAgrees(p.y, y, "y");
    ExpectAgrees(p.dx, dx, "dx");
  });
}

TEST(GeluProperty, InPlaceHasTheSameBits) {
  ForEachCase(3000, 100, [](RandomCase& random) {
    GeluProblem p(random);
    ExpectReproducible({&p.y}, [&](KernelContext& context) { p.Forward(p.y.data(), context); });
    ExpectReproducible({&p.dx}, [&](KernelContext& context) { p.Backward(p.dx.data(), context); });
    const std::vector<double> y = p.y.Values(), dx = p.dx.Values();
    ExpectReproducible({&p.dy}, [&](KernelContext& context) { p.Backward(p.dy.data(), context); });
    ExpectReproducible({&p.x}, [&](KernelContext& context) { p.Forward(p.x.data(), context); });
    ExpectEquals(p.x, std::vector<float>(y.begin(), y.end()), "y over x");
    ExpectEquals(p.dy, std::vector<float>(dx.begin(), dx.end()), "dx over dy");
  });
}

TEST(GeluProperty, ExtremeValues) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const int64_t n = std::size(kExtremes);
    StridedOperand x(dtype, 1, n), dy(dtype, 1, n), y(dtype, 1, n), dx(dtype, 1, n);
    for (int64_t i = 0; i < n; ++i) {
      x.Set(0, i, kExtremes[i]);
      dy.Set(0, i, 0.75);
    }
    ExpectReproducible({&y}, [&](KernelContext& context) {
      GeluForward({.elements = n, .x = x.data(), .y = y.data()}, dtype, context);
    });
    ExpectReproducible({&dx}, [&](KernelContext& context) {
      GeluBackward({.elements = n, .x = x.data(), .dy = dy.data(), .dx = dx.data()}, dtype,
                   context);
    });
    std::vector<Bounded> forward(n), backward(n);
    for (int64_t i = 0; i < n; ++i) {
      const double value = x.At(0, i);
      const double size = std::isfinite(value) ? std::fabs(value) : 0;
      forward[i] = FromDouble(reference::Gelu<double>(value), size);
      // The limits of the slope, 1 and 0, hold at the infinities too.
      const double slope =
          std::isinf(value) ? (value > 0 ? 1 : 0) : reference::GeluBackward<double>(value, 1);
      backward[i] = FromDouble(0.75 * slope, 1);
    }
    ExpectAgrees(y, forward, "y");
    ExpectAgrees(dx, backward, "dx");
  }
}

}  // namespace
}  // namespace planc::host
