#include "planc/flags.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/spec/suggest.h"

namespace planc {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::string Suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : absl::StrCat("; did you mean `", nearest, "`?");
}

}  // namespace

std::string Flags::Get(const std::string& name, const std::string& otherwise) const {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second.back();
}

std::vector<std::string> Flags::All(const std::string& name) const {
  const auto found = values.find(name);
  return found == values.end() ? std::vector<std::string>() : found->second;
}

std::vector<std::string> Flags::List(const std::string& name,
                                     const std::vector<std::string>& otherwise) const {
  if (!Has(name)) return otherwise;
  std::vector<std::string> list;
  for (const std::string& value : All(name)) {
    for (const auto piece : absl::StrSplit(value, ',')) list.emplace_back(piece);
  }
  return list;
}

absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& args,
                                 const std::vector<std::string>& with_value,
                                 const std::vector<std::string>& switches) {
  Flags flags;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--") {
      flags.positional.insert(flags.positional.end(), args.begin() + i + 1, args.end());
      break;
    }
    if (arg.size() < 2 || arg[0] != '-') {
      flags.positional.push_back(arg);
      continue;
    }
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    if (Contains(switches, name)) {
      if (equals != std::string::npos) {
        return absl::InvalidArgumentError(absl::StrCat(name, " takes no value"));
      }
      flags.values[name].push_back("");
      continue;
    }
    if (!Contains(with_value, name)) {
      std::vector<std::string> known = with_value;
      known.insert(known.end(), switches.begin(), switches.end());
      return absl::InvalidArgumentError(
          absl::StrCat("there is no flag `", name, "`", Suggestion(name, known)));
    }
    if (equals == std::string::npos && i + 1 == args.size()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
    }
    flags.values[name].push_back(equals == std::string::npos ? args[++i] : arg.substr(equals + 1));
  }
  return flags;
}

absl::Status CheckChoices(const std::string& flag, const std::vector<std::string>& chosen,
                          const std::vector<std::string>& supported) {
  for (const std::string& value : chosen) {
    if (Contains(supported, value)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " `", value, "` is not supported", Suggestion(value, supported),
                     " (supported: ", absl::StrJoin(supported, ", "), ")"));
  }
  return absl::OkStatus();
}

}  // namespace planc
