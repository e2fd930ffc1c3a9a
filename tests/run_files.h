// What tests that start `planc run` need around it.
#ifndef PLANC_TESTS_RUN_FILES_H_
#define PLANC_TESTS_RUN_FILES_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace planc {

// A whole file; empty when it cannot be read.
std::string ReadText(const std::string& path);
// Text in which the next letter is mostly, not always, a function of the letters before.
std::string LearnableText(int length);
// The child processes of a launcher: its ranks, in order.
std::vector<pid_t> RanksOf(pid_t launcher);

}  // namespace planc

#endif  // PLANC_TESTS_RUN_FILES_H_
