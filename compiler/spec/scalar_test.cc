#include "compiler/spec/scalar.h"

#include <limits>
#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace planc {
namespace {

// The value, or nothing if it is refused.
std::optional<int64_t> Whole(const std::string& text, proto::Unit unit = proto::UNIT_COUNT) {
  int64_t value = 0;
  if (ParseWhole(text, unit, value).has_value()) return std::nullopt;
  return value;
}

TEST(ScalarTest, CountsTakeSuffixes) {
  EXPECT_EQ(Whole("0"), 0);
  EXPECT_EQ(Whole("16Ki"), 16384);
  EXPECT_EQ(Whole("16k"), 16000);
  EXPECT_EQ(Whole("2.5Ki"), 2560);
  EXPECT_EQ(Whole("1.5M"), 1500000);
  EXPECT_EQ(Whole("1Gi"), 1073741824);
  EXPECT_EQ(Whole("-3"), -3);
  EXPECT_EQ(Whole("007"), 7);
}

TEST(ScalarTest, OtherTextIsRefused) {
  for (const char* text : {"", "-", ".", "Ki", "1.5", "0.3Ki", "1e6", "1_000", "0x10", "16KI",
                           "16 Ki", "16KiB", "+-1", "--1", "1.2.3k", "nan", "one"}) {
    EXPECT_EQ(Whole(text), std::nullopt) << text;
  }
}

TEST(ScalarTest, BytesAndSeconds) {
  EXPECT_EQ(Whole("2.5GiB", proto::UNIT_BYTES), 2684354560);
  EXPECT_EQ(Whole("400MB", proto::UNIT_BYTES), 400000000);
  EXPECT_EQ(Whole("12", proto::UNIT_BYTES), 12);
  EXPECT_EQ(Whole("12Ki", proto::UNIT_BYTES), std::nullopt);
  EXPECT_EQ(Whole("90s", proto::UNIT_SECONDS), 90);
  EXPECT_EQ(Whole("1.5h", proto::UNIT_SECONDS), 5400);
  EXPECT_EQ(Whole("5k", proto::UNIT_NONE), std::nullopt);
}

TEST(ScalarTest, OverflowIsItsOwnError) {
  EXPECT_EQ(Whole("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* text :
       {"9223372036854775808", "9999999999Gi", "99999999999999999999999999999999999999999999"}) {
    int64_t value = 0;
    const std::optional<ScalarError> error = ParseWhole(text, proto::UNIT_COUNT, value);
    ASSERT_TRUE(error.has_value()) << text;
    EXPECT_EQ(error->code, DiagnosticCode::kOverflow) << text;
  }
}

TEST(ScalarTest, ExponentsOfCountsGetTheNumberAsHelp) {
  int64_t value = 0;
  const std::optional<ScalarError> error = ParseWhole("1e6", proto::UNIT_COUNT, value);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->fix, "write 1000000");
}

TEST(ScalarTest, RealNumbers) {
  double value = 0;
  EXPECT_FALSE(ParseReal("3e-4", value).has_value());
  EXPECT_EQ(value, 3e-4);
  EXPECT_FALSE(ParseReal("-.5", value).has_value());
  EXPECT_EQ(value, -0.5);
  for (const char* text : {"", "nan", "inf", "1e999", "0x1p3", "1,5", "e", "1e"}) {
    EXPECT_TRUE(ParseReal(text, value).has_value()) << text;
  }
}

TEST(ScalarTest, FormattingReadsBack) {
  EXPECT_EQ(FormatWhole(int64_t{80} << 30, proto::UNIT_BYTES), "80GiB");
  EXPECT_EQ(FormatWhole(1000, proto::UNIT_BYTES), "1kB");
  EXPECT_EQ(FormatWhole(1001, proto::UNIT_BYTES), "1001");
  EXPECT_EQ(FormatWhole(16384, proto::UNIT_COUNT), "16384");
  EXPECT_EQ(FormatReal(0.1), "0.1");
  EXPECT_EQ(FormatReal(1e-8), "1e-08");
  EXPECT_EQ(FormatReal(1.0 / 3), "0.3333333333333333");
}

}  // namespace
}  // namespace planc
