#include "planc/go_on.h"

#include <gtest/gtest.h>

namespace planc {
namespace {

TEST(GoOnTest, TheNewestCheckpointInsteadOfWhatTheRunBeganWith) {
  EXPECT_EQ(GoOnCommand({"jobs/a.yaml"}, "auto"), "planc run jobs/a.yaml");
  EXPECT_EQ(GoOnCommand({"jobs/a.yaml", "--steps=5"}, "never"),
            "planc run jobs/a.yaml --steps=5 --resume=auto");
  EXPECT_EQ(GoOnCommand({"--resume", "runs/x/step-00000001", "a.plan", "--base=jobs"}, "never"),
            "planc run a.plan --base=jobs --resume=auto");
  EXPECT_EQ(GoOnCommand({"--resume=runs/x", "a.yaml"}, "auto"), "planc run a.yaml");
}

TEST(GoOnTest, WordsOfAShell) {
  EXPECT_EQ(GoOnCommand({"my job.yaml", "--set", "data.train=[it's.txt]", ""}, "auto"),
            "planc run 'my job.yaml' --set 'data.train=[it'\\''s.txt]' ''");
}

}  // namespace
}  // namespace planc
