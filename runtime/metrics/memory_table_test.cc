#include "runtime/metrics/memory_table.h"

#include <array>
#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

TEST(MemoryTableTest, PlannedAgainstAllocated) {
  RankClass rank_class;
  rank_class.arena_bytes = {100, 200, 300, 0, 0, 0, 0};
  const std::array<int64_t, kMemoryKindCount> allocated = {100, 264, 300, 0, 0, 0, 0};
  const std::string table = MemoryTable(rank_class, allocated, 12345);
  EXPECT_THAT(table, testing::HasSubstr(
                         "  gradients                     200                264           64\n"));
  EXPECT_THAT(table, testing::HasSubstr(
                         "  all arenas                    600                664           64\n"));
  EXPECT_THAT(table,
              testing::HasSubstr("  resident peak                                  12345\n"));
}

TEST(MemoryTableTest, ThisProcessHasResidentMemory) { EXPECT_GT(PeakResidentBytes(), 1 << 16); }

}  // namespace
}  // namespace planc
