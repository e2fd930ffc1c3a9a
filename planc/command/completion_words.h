#ifndef PLANC_PLANC_COMMAND_COMPLETION_WORDS_H_
#define PLANC_PLANC_COMMAND_COMPLETION_WORDS_H_

#include <string>
#include <vector>

namespace planc {

// What may stand in a place on the command line.
struct CompletionWords {
  struct Word {
    std::string text;  // the whole word; ends with '=' when a value follows without a blank
    std::string description;
  };
  std::vector<Word> words;
  bool files = false;
  bool folders = false;
  std::vector<std::string> suffixes;  // of files: ".yaml"; empty: any
};

// What may stand for the last of `words`, of which the first is planc's command. Everything that is
// offered begins with what is there already. Files and folders are left to the shell, which
// completes the part behind '='.
CompletionWords Complete(const std::vector<std::string>& words);

// One candidate a line, "text\tdescription", after a line ":files .yaml ..." or ":folders".
std::string CompletionText(const CompletionWords& completion);

}  // namespace planc

#endif  // PLANC_PLANC_COMMAND_COMPLETION_WORDS_H_
