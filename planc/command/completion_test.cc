// What `planc completion words` offers.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "planc/command/completion_words.h"
#include "planc/command_table.h"
#include "planc/commands.h"

namespace planc {
namespace {

std::vector<std::string> Texts(const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  for (const CompletionWords::Word& word : Complete(words).words) texts.push_back(word.text);
  return texts;
}

using Words = std::vector<std::string>;

TEST(Complete, Commands) {
  EXPECT_EQ(Texts({"ch"}), (Words{"check", "checkpoint"}));
  EXPECT_EQ(Texts({""}).size(), AllCommands().size());
  EXPECT_EQ(Texts({"--he"}), Words{"--help"});
  EXPECT_EQ(Texts({"help", "wh"}), Words{"where"});
  EXPECT_EQ(Texts({"help", "checkpoint", "e"}), Words{"export"});
  EXPECT_EQ(Texts({"nothing", ""}), Words{});
}

TEST(Complete, FlagsAndTheirValues) {
  EXPECT_EQ(Texts({"check", "--f"}), Words{"--format="});
  EXPECT_EQ(Texts({"check", "--s"}), Words{"--set"});
  EXPECT_EQ(Texts({"check", "--format=s"}), Words{"--format=sarif"});
  EXPECT_EQ(Texts({"check", "--format", "s"}), Words{"sarif"});
  EXPECT_EQ(Texts({"plan", "--show=mesh,me"}), (Words{"--show=mesh,mesh", "--show=mesh,memory"}));
  EXPECT_EQ(Texts({"plan", "a.yaml", "--color=n"}), Words{"--color=never"});
  EXPECT_EQ(Texts({"run", "--resume=a"}), Words{"--resume=auto"});
}

TEST(Complete, ActionsTakeTheirOwnFlags) {
  EXPECT_EQ(Texts({"checkpoint", ""}), (Words{"ls", "verify", "export", "import"}));
  EXPECT_EQ(Texts({"checkpoint", "export", "a", "--d"}), Words{"--dtype="});
  EXPECT_EQ(Texts({"checkpoint", "import", "a", "--d"}), Words{});
}

TEST(Complete, JobKeysAndTheirValues) {
  const Words mesh = Texts({"check", "a.yaml", "--set", "mesh."});
  EXPECT_NE(std::find(mesh.begin(), mesh.end(), "mesh.tp="), mesh.end());
  EXPECT_EQ(Texts({"check", "--set", "precision.compute=b"}), Words{"precision.compute=bf16"});
  EXPECT_EQ(Texts({"check", "--set=precision.compute=b"}), Words{"--set=precision.compute=bf16"});
  EXPECT_EQ(Texts({"check", "--set", "parallelism.sequence_parallel="}),
            (Words{"parallelism.sequence_parallel=true", "parallelism.sequence_parallel=false"}));
  EXPECT_EQ(Texts({"check", "--set", "model.preset=llama3.1-4"}),
            Words{"model.preset=llama3.1-405b"});
  EXPECT_EQ(Texts({"check", "--set", "cluster.device=ho"}), Words{"cluster.device=host"});
  EXPECT_EQ(Texts({"explain", "optimizer.l"}), Words{"optimizer.lr"});
  EXPECT_EQ(Texts({"explain", "PL0301"}), Words{"PL0301"});
}

TEST(Complete, FilesAndFolders) {
  EXPECT_EQ(Complete({"check", "jo"}).suffixes, (Words{".yaml", ".yml"}));
  EXPECT_EQ(Complete({"check", "a.yaml", "b.yaml", ""}).suffixes, (Words{".yaml", ".yml"}));
  EXPECT_EQ(Complete({"plan", ""}).suffixes, (Words{".yaml", ".yml", ".plan"}));
  EXPECT_FALSE(Complete({"plan", "a.yaml", ""}).files);
  EXPECT_TRUE(Complete({"plan", "--output="}).files);
  EXPECT_TRUE(Complete({"checkpoint", "export", ""}).folders);
  EXPECT_EQ(CompletionText(Complete({"plan", "a"})), ":files .yaml .yml .plan\n");
  EXPECT_EQ(CompletionText(Complete({"run", "--base="})), ":folders\n");
}

TEST(Completion, PrintsAScriptForEachShell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    std::ostringstream out;
    std::ostringstream err;
    EXPECT_EQ(RunCompletion({shell}, out, err), kExitOk) << err.str();
    EXPECT_NE(out.str().find("completion words -- "), std::string::npos) << shell;
  }
}

}  // namespace
}  // namespace planc
