#ifndef PLANC_TESTS_GOLDEN_FILE_H_
#define PLANC_TESTS_GOLDEN_FILE_H_

#include <string>

namespace planc {

// Fails the test where `actual` differs from the file `path`, named from the workspace root,
// showing the first line that differs. Under `--update=ROOT` rewrites ROOT/path instead;
// the library has the main() that reads this flag.
void CompareOrUpdateGolden(const std::string& path, const std::string& actual);

}  // namespace planc

#endif  // PLANC_TESTS_GOLDEN_FILE_H_
