#include "compiler/spec/choose_fixes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planc {
namespace {

// Tries of one job, and of one diagnostic. A try takes well under a millisecond.
constexpr int kMostTries = 400;
constexpr int kMostTriesOfOne = 80;
constexpr size_t kMostShown = 3;

using Counts = std::map<DiagnosticCode, int>;

Counts CountsOf(const DiagnosticList& list) {
  Counts counts;
  for (const Diagnostic& entry : list.entries()) ++counts[entry.code];
  return counts;
}

// Searches the proposals of one diagnostic.
class Search {
 public:
  Search(const TryJob& try_job, const DiagnosticList& before, DiagnosticCode code, int* tries_left)
      : try_job_(try_job), code_(code), allowed_(CountsOf(before)), tries_left_(*tries_left) {
    --allowed_[code];
  }

  std::vector<Proposal> Run(const std::vector<Proposal>& proposals) {
    std::vector<std::pair<Proposal, DiagnosticList>> failed;
    for (const Proposal& proposal : proposals) {
      if (passed_.size() == kMostShown) return passed_;
      DiagnosticList after;
      if (!Try(proposal, &after)) failed.emplace_back(proposal, std::move(after));
    }
    if (!passed_.empty()) return passed_;
    for (const auto& [proposal, after] : failed) {
      for (const Diagnostic& consequence : after.entries()) {
        if (allowed_.count(consequence.code) > 0 && consequence.code != code_) continue;
        for (const Proposal& cure : consequence.proposals) {
          if (passed_.size() == kMostShown) return passed_;
          DiagnosticList ignored;
          if (Combines(proposal, cure)) Try(Combined(proposal, cure), &ignored);
        }
      }
    }
    return passed_;
  }

 private:
  // Whether the job with `proposal` passes; keeps those that do.
  bool Try(const Proposal& proposal, DiagnosticList* after) {
    if (tries_left_ <= 0 || tries_ == kMostTriesOfOne) return false;
    --tries_left_;
    ++tries_;
    *after = try_job_(proposal);
    for (const auto& [code, count] : CountsOf(*after)) {
      const auto allowed = allowed_.find(code);
      if (count > (allowed == allowed_.end() ? 0 : allowed->second)) return false;
    }
    passed_.push_back(proposal);
    return true;
  }

  static bool Combines(const Proposal& first, const Proposal& second) {
    return std::none_of(second.begin(), second.end(), [&first](const Change& change) {
      return std::any_of(first.begin(), first.end(),
                         [&change](const Change& other) { return other.key == change.key; });
    });
  }

  static Proposal Combined(Proposal first, const Proposal& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  const TryJob& try_job_;
  const DiagnosticCode code_;
  Counts allowed_;  // of each code, how many the job may have with the proposal
  int& tries_left_;
  int tries_ = 0;
  std::vector<Proposal> passed_;
};

// "mesh.tp: 2 or 4, or model.heads: 8"; changes that belong together are joined by "with".
std::string TextOf(const std::vector<Proposal>& proposals) {
  std::vector<std::string> texts;
  std::string last_key;
  for (const Proposal& proposal : proposals) {
    if (proposal.size() == 1 && proposal[0].key == last_key) {
      absl::StrAppend(&texts.back(), " or ", proposal[0].value);
      continue;
    }
    last_key = proposal.size() == 1 ? proposal[0].key : "";
    texts.push_back(absl::StrJoin(proposal, " with ", [](std::string* out, const Change& change) {
      absl::StrAppend(out, change.key, ": ", change.value);
    }));
  }
  return absl::StrJoin(texts, ", or ");
}

}  // namespace

void ChooseFixes(const TryJob& try_job, DiagnosticList& diagnostics) {
  int tries_left = kMostTries;
  const DiagnosticList before = diagnostics;
  for (Diagnostic& diagnostic : diagnostics.mutable_entries()) {
    if (diagnostic.proposals.empty()) continue;
    Search search(try_job, before, diagnostic.code, &tries_left);
    diagnostic.proposals = search.Run(diagnostic.proposals);
    if (!diagnostic.proposals.empty()) diagnostic.fix = TextOf(diagnostic.proposals);
  }
}

}  // namespace planc
