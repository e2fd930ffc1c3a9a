// The command line: finds the command and runs it.
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "compiler/spec/suggest.h"
#include "planc/commands.h"

namespace planc {
namespace {

struct Command {
  std::string name;
  std::string arguments;
  std::string summary;
  int (*run)(const std::vector<std::string>&, std::ostream&, std::ostream&);
};

const std::vector<Command>& Commands() {
  static const auto* const commands = new std::vector<Command>{
#define PLANC_COMMAND(function, name, arguments, summary) {name, arguments, summary, Run##function},
#include "planc/commands.def"
#undef PLANC_COMMAND
  };
  return *commands;
}

void PrintHelp(std::ostream& out) {
  out << "planc: plans, proves and runs transformer training jobs\n\n";
  for (const Command& command : Commands()) {
    out << absl::StrFormat("  planc %-11s %-34s  %s\n", command.name, command.arguments,
                           command.summary);
  }
  out << "\nExit codes: 0 ok, 1 internal error, 2 job error, 3 does not fit in memory, 4 unsafe "
         "plan,\n5 differences found, 6 training fault, 7 a peer was lost or timed out,\n8 stopped "
         "by a signal, with a checkpoint to go on from.\n";
}

int Dispatch(const std::string& name, const std::vector<std::string>& args) {
  if (name == "help" || name == "--help" || name == "-h") {
    PrintHelp(std::cout);
    return kExitOk;
  }
  if (name == "--version") return Dispatch("version", args);
  std::vector<std::string> names = {"help"};
  for (const Command& command : Commands()) {
    if (command.name == name) return command.run(args, std::cout, std::cerr);
    names.push_back(command.name);
  }
  std::cerr << "planc: there is no command `" << name << "`";
  const std::string nearest = Nearest(name, names);
  if (!nearest.empty()) std::cerr << "; did you mean `" << nearest << "`?";
  std::cerr << "\n       `planc help` lists the commands\n";
  return kExitJobError;
}

}  // namespace
}  // namespace planc

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  if (argc < 2) {
    planc::PrintHelp(std::cerr);
    return planc::kExitJobError;
  }
  const int code = planc::Dispatch(argv[1], std::vector<std::string>(argv + 2, argv + argc));
  std::cout.flush();
  if (!std::cout.good() && code == planc::kExitOk) return planc::kExitInternal;
  return code;
}
