// The jobs that ship: each says whom it is for, passes check and compiles; those of small models on
// the text of ./quickstart run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planc/commands.h"
#include "tests/run_files.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ShippedJobs() {
  std::vector<std::string> jobs;
  for (const auto& entry : fs::directory_iterator("jobs")) {
    if (entry.path().extension() == ".yaml") jobs.push_back(entry.path().string());
  }
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

TEST(JobsTest, EachPassesCheckAndPlan) {
  const std::vector<std::string> jobs = ShippedJobs();
  ASSERT_GE(jobs.size(), 12u);
  for (const std::string& job : jobs) {
    const std::string text = ReadText(job);
    EXPECT_EQ(text.rfind("# For ", 0), 0u) << job << " does not begin with whom it is for";
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunCheck({job}, out, err), kExitOk) << job << err.str();
    EXPECT_THAT(out.str(), testing::HasSubstr(": ok, ")) << job;
    EXPECT_EQ(RunPlan({job, "--show=summary"}, out, err), kExitOk) << job << err.str();
  }
}

TEST(JobsTest, TheHostVariantsRun) {
  const std::string folder = testing::TempDir() + "/jobs_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::string text;
  for (int i = 0; i < 8000; ++i) text += static_cast<char>('a' + (i * i / 7) % 26);
  std::ofstream(folder + "/train.txt") << text;
  int ran = 0;
  for (const std::string& job : ShippedJobs()) {
    if (job.find("_host.yaml") == std::string::npos) continue;
    ++ran;
    const std::string name = fs::path(job).stem().string();
    const int status =
        std::system(absl::StrCat("planc/planc run ", job, " --steps=2 --set data.train=[", folder,
                                 "/train.txt] --set run.directory=", folder, "/", name, " > ",
                                 folder, "/", name, ".log 2>&1")
                        .c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kExitOk)
        << job << ReadText(folder + "/" + name + ".log");
  }
  EXPECT_EQ(ran, 2);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace planc
