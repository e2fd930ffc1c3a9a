#ifndef PLANC_SCHEMAS_COUNTED_H_
#define PLANC_SCHEMAS_COUNTED_H_

#include <cstdint>
#include <string>

namespace planc {

// "1 rank", "4 ranks", "0 ranks"; "2 batches", "2 entries". `noun` is singular, of one or more
// words, the last of which is counted.
std::string Counted(int64_t count, const std::string& noun);
// The same with a count that is written already, such as "12,345".
std::string Counted(const std::string& count, const std::string& noun);

}  // namespace planc

#endif  // PLANC_SCHEMAS_COUNTED_H_
