#include "planc/text.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace planc {
namespace {

TEST(Text, Bytes) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1024), "1.00 KiB");
  EXPECT_EQ(BytesText(int64_t{80} << 30), "80.0 GiB");
  EXPECT_EQ(BytesText(1023 * 1024 + 1023), "1.00 MiB");
  EXPECT_EQ(BytesText(-3 * 1024 * 1024), "-3.00 MiB");
}

TEST(Text, Numbers) {
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(405853388800.0), "405.85 G");
  EXPECT_EQ(GroupedText(12345678), "12,345,678");
  EXPECT_EQ(GroupedText(-1234), "-1,234");
  EXPECT_EQ(GroupedText(999), "999");
  EXPECT_EQ(SecondsText(0.00125), "1.25 ms");
  EXPECT_EQ(RangesText({0, 1, 2, 3, 7, 9, 10}), "0-3,7,9-10");
  EXPECT_EQ(RangesText({}), "");
}

TEST(Text, TableAligns) {
  TextTable table({"kind", ">bytes"});
  table.Add({"weights", "1"});
  table.AddRule();
  table.Add({"all", "1234567"});
  EXPECT_EQ(table.Text(2),
            "  kind       bytes\n"
            "  weights        1\n"
            "  -------  -------\n"
            "  all      1234567\n");
}

TEST(Text, WrapKeepsEveryWord) {
  const std::string word(30, 'x');
  const std::string line = "  " + word + " " + word + " " + word + " " + word;
  EXPECT_EQ(Wrap(line + "\nshort\n", 4),
            "  " + word + " " + word + " " + word + "\n      " + word + "\nshort\n");
  const std::string long_word(150, 'y');
  EXPECT_EQ(Wrap(long_word, 2), long_word);
  EXPECT_EQ(Wrap(long_word + " z", 2), long_word + "\n  z");
}

TEST(Text, AStringIsNoTerminal) {
  std::ostringstream out;
  EXPECT_FALSE(IsTerminal(out));
}

}  // namespace
}  // namespace planc
