#include "planc/open_files_notice.h"

#include "compiler/pipeline.h"
#include "compiler/spec/load_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using ::testing::HasSubstr;

TEST(OpenFilesNoticeTest, NamesTheRankAndTheNumbers) {
  const LoadResult job = LoadJob("jobs/llama3_8b_fsdp.yaml", {});
  ASSERT_TRUE(job.ok);
  const absl::StatusOr<Plan> plan = CompilePlan(job.spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  DiagnosticList list;
  AddOpenFilesNotice(*plan, job, 1'000'000, &list);
  EXPECT_TRUE(list.entries().empty());
  AddOpenFilesNotice(*plan, job, 40, &list);
  ASSERT_EQ(list.entries().size(), 1);
  const Diagnostic& notice = list.entries()[0];
  EXPECT_EQ(notice.code, DiagnosticCode::kTooManyOpenFiles);
  EXPECT_EQ(notice.severity, Severity::kWarning);
  EXPECT_THAT(notice.message, HasSubstr("rank 0 needs "));
  EXPECT_THAT(notice.message, HasSubstr("; this machine allows a process 40"));
}

}  // namespace
}  // namespace planc
