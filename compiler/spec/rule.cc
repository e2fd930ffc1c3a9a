#include "compiler/spec/rule.h"

namespace planc {

bool Facts::IsWritten(const std::string& path) const {
  const auto found = origins.find(path);
  return found != origins.end() &&
         (found->second.kind == Origin::Kind::kFile || found->second.kind == Origin::Kind::kSet);
}

bool IsRotary(proto::Family family) { return family != proto::GPT2 && family != proto::GPT3; }

}  // namespace planc
