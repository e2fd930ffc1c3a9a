#include "schemas/counted.h"

#include <gtest/gtest.h>

namespace planc {
namespace {

TEST(Counted, OneIsSingular) {
  EXPECT_EQ(Counted(1, "rank"), "1 rank");
  EXPECT_EQ(Counted(2, "rank"), "2 ranks");
  EXPECT_EQ(Counted(0, "rank"), "0 ranks");
  EXPECT_EQ(Counted(-1, "step"), "-1 steps");
  EXPECT_EQ(Counted(21, "byte"), "21 bytes");
}

TEST(Counted, Plurals) {
  EXPECT_EQ(Counted(1, "microbatch"), "1 microbatch");
  EXPECT_EQ(Counted(3, "microbatch"), "3 microbatches");
  EXPECT_EQ(Counted(2, "entry"), "2 entries");
  EXPECT_EQ(Counted(5, "more rank"), "5 more ranks");
}

TEST(Counted, TakesAWrittenCount) {
  EXPECT_EQ(Counted("1", "element"), "1 element");
  EXPECT_EQ(Counted("1,001", "element"), "1,001 elements");
  EXPECT_EQ(Counted("1.00 G", "parameter"), "1.00 G parameters");
}

}  // namespace
}  // namespace planc
