#include "runtime/metrics/memory_table.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

TEST(MemoryTableTest, PlannedAgainstMappedAndResident) {
  RankClass rank_class;
  rank_class.arena_bytes = {100, 200, 300, 0, 0, 0, 0};
  ArenaMemory arenas{};
  arenas[0] = {100, 100};
  arenas[1] = {264, 164};
  arenas[2] = {300, 300};
  const std::string table = MemoryTable(rank_class, arenas, 12345);
  EXPECT_THAT(table, testing::HasSubstr("  gradients                     200                264"
                                        "                164           64\n"));
  EXPECT_THAT(table, testing::HasSubstr("  all arenas                    600                664"
                                        "                564           64\n"));
  EXPECT_THAT(table, testing::HasSubstr("  process peak                                          "
                                        "            12345\n"));
  EXPECT_THAT(table, testing::HasSubstr("  beside arenas                                         "
                                        "            11781\n"));
}

TEST(MemoryTableTest, ThisProcessHasResidentMemory) { EXPECT_GT(PeakResidentBytes(), 1 << 16); }

}  // namespace
}  // namespace planc
