// The command line: finds the command and runs it.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "compiler/spec/suggest.h"
#include "planc/command_table.h"
#include "planc/commands.h"
#include "planc/flags.h"
#include "planc/help_text.h"
#include "planc/text.h"
#include "runtime/launch/descriptor_limit.h"
#include "runtime/launch/signals.h"
#include "runtime/launch/terminal.h"

namespace planc {
namespace {

using CommandFunction = int (*)(const std::vector<std::string>&, std::ostream&, std::ostream&);

// The function of the command, or nullptr.
CommandFunction FunctionOf(const std::string& name) {
#define PLANC_COMMAND(function, text, arguments, summary, description) \
  if (name == text) return &Run##function;
#include "planc/commands.def"
  return nullptr;
}

// Decides whether what goes to `stream` is coloured. `choice` is the value of --color.
void ChooseColour(const std::string& choice, const Environment& environment, std::ostream& stream) {
  const bool suits = IsTerminal(stream) && ColourSuits(environment);
  SetColour(stream, choice == "always" || (choice == "auto" && suits));
}

int NoCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const CommandInfo& command : AllCommands()) names.push_back(command.name);
  std::cerr << "planc: there is no command `" << name << "`";
  const std::string nearest = Nearest(name, names);
  if (!nearest.empty()) std::cerr << "; did you mean `" << nearest << "`?";
  std::cerr << "\n       `planc help` lists the commands\n";
  return kExitJobError;
}

int Dispatch(const std::string& name, const std::vector<std::string>& args) {
  if (name == "--help" || name == "-h") return Dispatch("help", args);
  if (name == "--version") return Dispatch("version", args);
  const CommandFunction function = FunctionOf(name);
  if (function == nullptr) return NoCommand(name);
  // Where the arguments are wrong the command says so.
  const absl::StatusOr<Flags> flags = ParseFlags(name, args);
  const Environment environment = ProcessEnvironment();
  const std::string choice = flags.ok() ? flags->Get("--color") : "auto";
  ChooseColour(choice, environment, std::cout);
  ChooseColour(choice, environment, std::cerr);
  if (flags.ok() && flags->Has("--help")) {
    std::vector<std::string> about = {name};
    const CommandInfo& command = *FindCommand(name);
    if (!flags->positional.empty() && FindAction(command, flags->positional[0]) != nullptr) {
      about.push_back(flags->positional[0]);
    }
    return RunHelp(about, std::cout, std::cerr);
  }
  return function(args, std::cout, std::cerr);
}

// Where one of them is closed, the next file that is opened would take its place and its output.
void ReserveStandardDescriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest free number is this one.
    [[maybe_unused]] const int null = open("/dev/null", O_RDWR);
  }
}

// The exit code of a command whose results must reach the standard output. A run's results are
// files: it goes on without that output and ends as it would with it.
int FlushOutput(const std::string& command, int code) {
  std::cout.flush();
  if (std::cout.good() || code != kExitOk || command == "run") return code;
  std::cout.clear();
  errno = 0;
  [[maybe_unused]] const ssize_t again = write(STDOUT_FILENO, "\n", 1);  // for the reason
  std::cerr << "planc " << command << ": standard output: cannot write"
            << (errno == 0 ? "" : std::string(": ") + std::strerror(errno)) << "\n";
  return kExitJobError;
}

}  // namespace
}  // namespace planc

int main(int argc, char** argv) {
  planc::ReserveStandardDescriptors();
  planc::IgnoreFileSizeSignal();
  planc::RaiseDescriptorLimit();
  std::ios::sync_with_stdio(false);
  if (argc < 2) {
    std::cerr << planc::OverviewText();
    return planc::kExitJobError;
  }
  const int code = planc::Dispatch(argv[1], std::vector<std::string>(argv + 2, argv + argc));
  return planc::FlushOutput(argv[1], code);
}
