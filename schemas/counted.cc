#include "schemas/counted.h"

namespace planc {
namespace {

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string Plural(const std::string& noun) {
  if (EndsWith(noun, "ch") || EndsWith(noun, "s") || EndsWith(noun, "x")) return noun + "es";
  if (EndsWith(noun, "try")) return noun.substr(0, noun.size() - 1) + "ies";
  return noun + "s";
}

}  // namespace

std::string Counted(int64_t count, const std::string& noun) {
  return Counted(std::to_string(count), noun);
}

std::string Counted(const std::string& count, const std::string& noun) {
  return count + " " + (count == "1" ? noun : Plural(noun));
}

}  // namespace planc
