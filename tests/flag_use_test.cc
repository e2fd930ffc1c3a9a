// Every flag of commands.def is read by its command, and a command reads no other: a command's
// files are NAME.cc and NAME_*.cc in planc/ and planc/command/, and they name a flag in a literal.
// main.cc reads the flags of every command.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "planc/command_table.h"

namespace planc {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// The literals of a C++ file that are a flag's name; `read` only those that Flags is asked for.
Names FlagsNamedIn(const fs::path& path, bool read) {
  std::ifstream stream(path);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const std::regex literal(std::string(read ? "(?:->|\\.)(?:Has|Get|All|List)\\(" : "") +
                           "\"(--[a-z][a-z0-9-]*)\"");
  Names names;
  for (std::sregex_iterator match(text.begin(), text.end(), literal), end; match != end; ++match) {
    names.insert((*match)[1]);
  }
  return names;
}

// The command that `stem` belongs to: the longest that it is or begins with, or nullptr.
const CommandInfo* OwnerOf(const std::string& stem) {
  const CommandInfo* owner = nullptr;
  for (const CommandInfo& command : AllCommands()) {
    if (stem != command.name && stem.rfind(command.name + "_", 0) != 0) continue;
    if (owner == nullptr || command.name.size() > owner->name.size()) owner = &command;
  }
  return owner;
}

TEST(FlagUse, TheTableIsWhatCommandsRead) {
  const fs::path folder = fs::canonical("WORKSPACE").parent_path() / "planc";
  std::map<std::string, Names> read;
  std::vector<fs::directory_entry> files;
  for (const fs::path& part : {folder, folder / "command"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(part)) files.push_back(entry);
  }
  for (const fs::directory_entry& entry : files) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".cc" || stem == "flags" ||
        (stem.size() > 5 && stem.substr(stem.size() - 5) == "_test")) {
      continue;
    }
    const CommandInfo* const owner = OwnerOf(stem);
    const Names names = FlagsNamedIn(entry.path(), owner == nullptr);
    if (owner == nullptr && stem != "main") {
      EXPECT_EQ(names, Names()) << entry.path() << " belongs to no command";
    }
    read[owner == nullptr ? stem : owner->name].insert(names.begin(), names.end());
  }
  for (const CommandInfo& command : AllCommands()) {
    Names table;
    for (const FlagInfo& flag : command.flags) table.insert(flag.name);
    for (const ActionInfo& action : command.actions) {
      for (const FlagInfo& flag : action.flags) table.insert(flag.name);
    }
    EXPECT_EQ(read[command.name], table) << "planc " << command.name;
  }
  for (const FlagInfo& flag : CommonFlags()) {
    EXPECT_EQ(read["main"].count(flag.name), 1U) << flag.name;
  }
}

}  // namespace
}  // namespace planc
