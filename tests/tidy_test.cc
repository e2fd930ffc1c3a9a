// The repository keeps its own style rules, and each rule notices what it should.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tidy_rules.h"

namespace planc {
namespace {

namespace fs = std::filesystem;

// The workspace: the runfiles hold a link to its WORKSPACE file.
fs::path WorkspaceRoot() { return fs::canonical("WORKSPACE").parent_path(); }

bool IsSkippedFolder(const std::string& name) {
  return name == ".git" || name == "build" || name == "data" || name.rfind("bazel-", 0) == 0;
}

std::vector<TidyFile> ReadTree(const fs::path& root) {
  std::vector<TidyFile> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::end(entry); ++entry) {
    if (entry->is_directory() && entry.depth() == 0 &&
        IsSkippedFolder(entry->path().filename().string())) {
      entry.disable_recursion_pending();
    }
    if (!entry->is_regular_file() || entry->is_symlink()) continue;
    std::ifstream stream(entry->path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    files.push_back(TidyFile::FromText(fs::relative(entry->path(), root).string(), text));
  }
  return files;
}

std::string Report(const TidyViolations& violations) {
  std::string report;
  for (const TidyViolation& violation : violations) report += violation.ToString() + "\n";
  return report;
}

// The violations of one file that a BUILD file beside it lists.
std::string ReportOf(const std::string& path, const std::string& text) {
  const size_t slash = path.rfind('/');
  const TidyFile build = TidyFile::FromText(path.substr(0, slash) + "/BUILD",
                                            "srcs = [\"" + path.substr(slash + 1) + "\"]\n");
  return Report(CheckTree({build, TidyFile::FromText(path, text)}));
}

std::string FunctionOfLines(int lines) {
  std::string text = "int F(int a,\n      int b) {\n";
  for (int i = 0; i < lines - 3; ++i) text += "  ++a;\n";
  return text + "}\n";
}

TEST(TidyTest, TheRepositoryIsTidy) {
  const std::vector<TidyFile> files = ReadTree(WorkspaceRoot());
  EXPECT_GT(files.size(), 10U) << "the workspace was not found";
  const TidyViolations violations = CheckTree(files);
  EXPECT_TRUE(violations.empty()) << "\n" << Report(violations);
}

TEST(TidyTest, Columns) {
  const std::string line(100, 'a');
  EXPECT_EQ(ReportOf("schemas/a.cc", line + "\n"), "");
  EXPECT_EQ(ReportOf("schemas/a.cc", "\n" + line + "a\n"),
            "schemas/a.cc:2: 101 columns; at most 100\n");
  EXPECT_EQ(ReportOf("schemas/a.cc", "// https://" + line + "\n"), "");
}

TEST(TidyTest, Blanks) {
  EXPECT_EQ(ReportOf("schemas/a.cc", "int a; \n"), "schemas/a.cc:1: trailing blank\n");
  EXPECT_EQ(ReportOf("schemas/a.cc", "\tint a;\n"), "schemas/a.cc:1: tab\n");
}

TEST(TidyTest, FileLength) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "\n";
  EXPECT_EQ(ReportOf("schemas/a.cc", text), "");
  EXPECT_EQ(ReportOf("schemas/a.cc", text + "\n"), "schemas/a.cc:501: 501 lines; at most 500\n");
}

TEST(TidyTest, FunctionLength) {
  EXPECT_EQ(ReportOf("schemas/a.cc", FunctionOfLines(70)), "");
  EXPECT_EQ(ReportOf("schemas/a.cc", FunctionOfLines(71)),
            "schemas/a.cc:1: function of 71 lines; at most 70\n");
  EXPECT_EQ(ReportOf("schemas/a.cc", "namespace planc {\nclass A {\n" + FunctionOfLines(71) +
                                         "};\n}  // namespace planc\n"),
            "schemas/a.cc:3: function of 71 lines; at most 70\n");
}

TEST(TidyTest, BracesInLiteralsAndCommentsDoNotCount) {
  const std::string literals =
      "const char kA[] = \"{\";  // {\nconst char kB = '{';\nconst int kC = 1'000;\n"
      "/* {\n{ */ const char kD[] = R\"x({\n{)x\";\n#define E {\n";
  EXPECT_EQ(ReportOf("schemas/a.cc", literals + FunctionOfLines(71)),
            "schemas/a.cc:8: function of 71 lines; at most 70\n");
}

TEST(TidyTest, IncludeGuard) {
  EXPECT_EQ(ReportOf("schemas/a_b.h",
                     "#ifndef PLANC_SCHEMAS_A_B_H_\n#define PLANC_SCHEMAS_A_B_H_\n"
                     "#endif  // PLANC_SCHEMAS_A_B_H_\n"),
            "");
  EXPECT_EQ(ReportOf("schemas/a_b.h", "#pragma once\n"),
            "schemas/a_b.h:0: no include guard PLANC_SCHEMAS_A_B_H_\n");
}

TEST(TidyTest, FoldersImportDownwardsOnly) {
  EXPECT_EQ(ReportOf("runtime/a.cc", "#include \"schemas/plan.h\"\n#include <vector>\n"), "");
  EXPECT_EQ(ReportOf("runtime/a.cc", "#include \"compiler/a.h\"\n"),
            "runtime/a.cc:1: runtime must not include compiler\n");
  EXPECT_EQ(ReportOf("compiler/a.cc", "#include \"runtime/a.h\"\n"),
            "compiler/a.cc:1: compiler must not include runtime\n");
  EXPECT_EQ(ReportOf("kernels/a.cc", "#include \"runtime/a.h\"\n"),
            "kernels/a.cc:1: kernels must not include runtime\n");
  EXPECT_EQ(ReportOf("schemas/a.cc", "#include \"planc/a.h\"\n"),
            "schemas/a.cc:1: schemas must not include planc\n");
  EXPECT_EQ(ReportOf("planc/a.cc", "#include \"runtime/a.h\"\n#include \"compiler/a.h\"\n"), "");
}

TEST(TidyTest, LibrariesStayWhereTheyBelong) {
  EXPECT_EQ(ReportOf("compiler/spec/a.cc", "#include <yaml-cpp/yaml.h>\n"), "");
  EXPECT_EQ(ReportOf("planc/a.cc", "#include <yaml-cpp/yaml.h>\n"),
            "planc/a.cc:1: yaml-cpp/yaml.h must not be included here\n");
  EXPECT_EQ(ReportOf("kernels/a.cc", "#include \"gloo/context.h\"\n"),
            "kernels/a.cc:1: gloo/context.h must not be included here\n");
  EXPECT_EQ(ReportOf("runtime/a.cc", "#include \"dnnl.hpp\"\n"),
            "runtime/a.cc:1: dnnl.hpp must not be included here\n");
  EXPECT_EQ(ReportOf("runtime/a.cc", "#include <glog/logging.h>\n"), "");
  EXPECT_EQ(ReportOf("runtime/a.cc", "#include <glog/logging.h>\n#include \"schemas/plan.pb.h\"\n"),
            "runtime/a.cc:1: glog beside a .pb.h: their macros clash\n");
}

TEST(TidyTest, Words) {
  EXPECT_EQ(ReportOf("schemas/a.cc",
                     "// TO"
                     "DO later\n"),
            "schemas/a.cc:1: TO"
            "DO marks unfinished work\n");
  EXPECT_EQ(ReportOf("runtime/a.cc", "char* a = getenv(\"A\");\n"),
            "runtime/a.cc:1: getenv outside runtime/launch\n");
  EXPECT_EQ(ReportOf("runtime/launch/a.cc", "char* a = getenv(\"A\");\n"), "");
  EXPECT_EQ(ReportOf("runtime/a.cc", "// We try to catch errors.\nint f() { throw 1; }\n"),
            "runtime/a.cc:2: throw: planc has no exceptions\n");
  EXPECT_EQ(ReportOf("compiler/spec/yaml_reader.cc", "int f() { throw 1; }\n"), "");
}

TEST(TidyTest, SourcesAreListedAndNotGlobbed) {
  const TidyFile source = TidyFile::FromText("schemas/x/a.cc", "");
  EXPECT_EQ(Report(CheckTree({source})), "schemas/x/a.cc:0: no BUILD file above it\n");
  EXPECT_EQ(Report(CheckTree({source, TidyFile::FromText("schemas/BUILD", "\"x/a.cc\"\n")})), "");
  EXPECT_EQ(Report(CheckTree({source, TidyFile::FromText("schemas/BUILD", "glob([\"x/*\"])\n")})),
            "schemas/BUILD:1: list the files, no glob\n"
            "schemas/x/a.cc:0: not listed in schemas/BUILD\n");
}

}  // namespace
}  // namespace planc
