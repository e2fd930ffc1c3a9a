// The style rules that a machine can check (docs/style.md), one function for each kind.
#ifndef PLANC_TESTS_TIDY_RULES_H_
#define PLANC_TESTS_TIDY_RULES_H_

#include <string>
#include <vector>

namespace planc {

// One file of the repository.
struct TidyFile {
  std::string path;                // from the workspace root: "schemas/dtype.h"
  std::vector<std::string> lines;  // without line ends

  // TidyFile of `text`; the last line may lack its line end.
  static TidyFile FromText(std::string path, const std::string& text);
};

// A broken rule, at a line that counts from 1 (0: the file as a whole).
struct TidyViolation {
  std::string path;
  int line = 0;
  std::string message;

  // "path:line: message"
  std::string ToString() const;
};

using TidyViolations = std::vector<TidyViolation>;

// True for .cc, .h, .cu, .cuh, .inc and .def.
bool IsCppFile(const std::string& path);

// The lines of a C++ file with comments, literals and preprocessor directives blanked out.
std::vector<std::string> CodeOnly(const std::vector<std::string>& lines);

// At most 100 columns (UTF-8 characters; a line with a URL may be longer), no tabs outside
// makefile-like text, no trailing blanks, at most 500 lines a file.
void CheckLayout(const TidyFile& file, TidyViolations* violations);

// At most 70 lines a function, from its first line to its closing brace. Relies on clang-format.
void CheckFunctionLength(const TidyFile& file, TidyViolations* violations);

// Headers have a guard named for their path, PLANC_DIRECTORY_FILE_H_.
void CheckIncludeGuard(const TidyFile& file, TidyViolations* violations);

// Which folder may include which, and the few folders that may include a given library.
void CheckIncludes(const TidyFile& file, TidyViolations* violations);

// getenv, exceptions, and words that mark unfinished work.
void CheckWords(const TidyFile& file, TidyViolations* violations);

// Each source is named in the BUILD file of its package, and no BUILD file globs.
void CheckBuildFiles(const std::vector<TidyFile>& files, TidyViolations* violations);

// All rules on all files, sorted by path and line.
TidyViolations CheckTree(const std::vector<TidyFile>& files);

}  // namespace planc

#endif  // PLANC_TESTS_TIDY_RULES_H_
