#ifndef PLANC_PLANC_COMMAND_COMPLETION_SCRIPTS_H_
#define PLANC_PLANC_COMMAND_COMPLETION_SCRIPTS_H_

#include <string>

namespace planc {

// What a shell ("bash", "zsh" or "fish") evaluates to complete planc: it asks `planc completion
// words` for the candidates and completes files and folders itself.
std::string CompletionScript(const std::string& shell);

}  // namespace planc

#endif  // PLANC_PLANC_COMMAND_COMPLETION_SCRIPTS_H_
