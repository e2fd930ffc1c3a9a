#include "runtime/replica_check.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/checkpoint/json_fields.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/shard_boxes.h"
#include "schemas/counted.h"
#include "schemas/fault.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr char kTag[] = "replicas";
constexpr char kConstants[] = "constants";          // the pool
constexpr int64_t kPieceBytes = int64_t{16} << 20;  // what one thread hashes at a time
constexpr size_t kRanksNamed = 8;                   // in a message

int64_t At(const Coordinates& coordinates, Axis axis) {
  return coordinates[static_cast<int>(axis)];
}

int64_t Elements(const Parameter& parameter) {
  int64_t elements = 1;
  for (const int64_t size : parameter.local_shape) elements *= size;
  return elements;
}

// What one rank says of what differs.
struct Holder {
  int64_t rank = 0;
  std::string host;
  std::vector<std::pair<std::string, std::string>> pieces;  // hash, name
};

// "rank 3 (on node7)", "ranks 0, 1, 2".
std::string RanksText(const std::vector<const Holder*>& holders, bool with_hosts) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(holders.size(), kRanksNamed); ++i) {
    names.push_back(absl::StrCat(holders[i]->rank));
    if (with_hosts && !holders[i]->host.empty()) {
      absl::StrAppend(&names.back(), " (on ", holders[i]->host, ")");
    }
  }
  std::string text =
      absl::StrCat(holders.size() == 1 ? "rank " : "ranks ", absl::StrJoin(names, ", "));
  if (holders.size() > kRanksNamed) absl::StrAppend(&text, " and ", holders.size() - kRanksNamed);
  return text + (holders.size() > kRanksNamed ? " more" : "");
}

// How the holders of one set differ in piece `piece`; nothing when they do not.
std::string DifferenceText(const std::vector<Holder>& holders, size_t piece) {
  std::map<std::string, std::vector<const Holder*>> groups;  // by hash
  for (const Holder& holder : holders) groups[holder.pieces[piece].first].push_back(&holder);
  if (groups.size() == 1) return "";
  const auto largest = std::max_element(
      groups.begin(), groups.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const std::string& name = holders[0].pieces[piece].second;
  if (2 * largest->second.size() <= holders.size()) {
    std::vector<const Holder*> all;
    for (const Holder& holder : holders) all.push_back(&holder);
    return absl::StrCat(RanksText(all, true), " differ in ", name,
                        "; which of them is wrong cannot be told");
  }
  std::vector<const Holder*> odd;
  for (const auto& [hash, members] : groups) {
    if (hash != largest->first) odd.insert(odd.end(), members.begin(), members.end());
  }
  return absl::StrCat(RanksText(odd, true), odd.size() == 1 ? " has another " : " have another ",
                      name, " than ", RanksText(largest->second, false), ", which agree");
}

// A line about one set of holders.
std::string SetText(const std::vector<Holder>& holders) {
  std::string first;
  std::set<std::string> names;
  for (size_t piece = 0; piece < holders[0].pieces.size(); ++piece) {
    const std::string text = DifferenceText(holders, piece);
    if (text.empty()) continue;
    if (first.empty()) first = text;
    names.insert(holders[0].pieces[piece].second);
  }
  if (names.size() > 1) {
    absl::StrAppend(&first, "; so do ", Counted(static_cast<int64_t>(names.size()) - 1, "tensor"),
                    " more");
  }
  return first;
}

}  // namespace

ReplicaCheck::ReplicaCheck(const Session& session, Control* control, std::string host)
    : session_(session), plan_(session.plan()), control_(control), host_(std::move(host)) {
  for (int unit = 0; unit < static_cast<int>(plan_.units.size()); ++unit) {
    if (HasReplicas({unit, -1})) shared_.push_back({unit, -1});
  }
  for (int buffer = 0; buffer < static_cast<int>(plan_.buffers.size()); ++buffer) {
    if (plan_.pools[plan_.buffers[buffer].pool].name != kConstants) continue;
    if (HasReplicas({-1, buffer})) shared_.push_back({-1, buffer});
  }
  for (size_t i = 0; i < shared_.size(); ++i) {
    if (HolderSet(shared_[i], session.rank()) < 0) continue;
    if (shared_[i].unit >= 0) {
      AddUnit(i);
    } else {
      const Buffer& constant = plan_.buffers[shared_[i].buffer];
      AddPieces(i, "constant " + constant.name, session.Address(shared_[i].buffer), constant.bytes);
    }
  }
}

int64_t ReplicaCheck::HolderSet(const Shared& shared, int64_t rank) const {
  const Coordinates at = plan_.mesh.CoordinatesOf(rank);
  const int64_t stage = At(at, Axis::kPp);
  const int buffer = shared.unit < 0 ? shared.buffer : plan_.units[shared.unit].master;
  if (plan_.classes[stage].pool_slots[plan_.buffers[buffer].pool] == 0) return -1;
  if (shared.unit < 0) return 0;
  const Unit& unit = plan_.units[shared.unit];
  // A unit that is not per layer is the same on every stage that has it.
  const int64_t layers = unit.per_layer ? stage : 0;
  const int64_t part = unit.tp_sharded ? At(at, Axis::kTp) : 0;
  return (layers * plan_.mesh[Axis::kTp] + part) * plan_.mesh[Axis::kDpShard] +
         At(at, Axis::kDpShard);
}

bool ReplicaCheck::HasReplicas(const Shared& shared) const {
  std::set<int64_t> sets;
  for (int64_t rank = 0; rank < plan_.mesh.WorldSize(); ++rank) {
    const int64_t set = HolderSet(shared, rank);
    if (set >= 0 && !sets.insert(set).second) return true;
  }
  return false;
}

void ReplicaCheck::AddUnit(size_t shared) {
  for (const ShardView& shard : session_.Shards()) {
    if (shard.unit != shared_[shared].unit) continue;
    for (const Parameter& parameter : plan_.params) {
      if (parameter.unit != shard.unit) continue;
      const int64_t from = std::max(parameter.unit_offset, shard.begin);
      const int64_t to =
          std::min(parameter.unit_offset + Elements(parameter), shard.begin + shard.count);
      if (from >= to) continue;
      const std::string name = ParameterName(parameter.name, shard.layer);
      const float* const states[] = {shard.master, shard.m, shard.v};
      for (const StateKind kind : kAllStateKinds) {
        AddPieces(shared, absl::StrCat(StateKindName(kind), " of ", name),
                  states[static_cast<int>(kind)] + (from - shard.begin),
                  (to - from) * static_cast<int64_t>(sizeof(float)));
      }
    }
  }
}

void ReplicaCheck::AddPieces(size_t shared, const std::string& name, const void* data,
                             int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    pieces_.push_back(
        {shared, name, static_cast<const char*>(data) + at, std::min(bytes - at, kPieceBytes)});
  }
}

std::vector<uint64_t> ReplicaCheck::HashPieces() const {
  std::vector<uint64_t> hashes(pieces_.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < pieces_.size(); i = next++) {
      hashes[i] = Checksum(pieces_[i].data, pieces_[i].bytes);
    }
  };
  const size_t threads =
      std::min(pieces_.size(), static_cast<size_t>(std::max(session_.threads(), 1)));
  std::vector<std::thread> helping;
  for (size_t i = 1; i < threads; ++i) helping.emplace_back(work);
  work();
  for (std::thread& thread : helping) thread.join();
  return hashes;
}

std::string ReplicaCheck::Digests(const std::vector<uint64_t>& hashes) const {
  std::vector<std::vector<uint64_t>> parts(shared_.size());
  for (size_t i = 0; i < pieces_.size(); ++i) parts[pieces_[i].shared].push_back(hashes[i]);
  std::vector<std::string> digests;
  for (const std::vector<uint64_t>& part : parts) {
    const int64_t bytes = static_cast<int64_t>(part.size() * sizeof(uint64_t));
    digests.push_back(HexText(Checksum(part.data(), bytes)));
  }
  return absl::StrJoin(digests, " ");
}

std::string ReplicaCheck::FindDifferences(const std::vector<std::string>& digests) const {
  std::vector<std::vector<std::string>> words;  // by rank
  for (const std::string& text : digests) words.push_back(absl::StrSplit(text, ' '));
  std::vector<std::string> differences;
  for (size_t i = 0; i < shared_.size(); ++i) {
    std::map<int64_t, std::vector<int64_t>> sets;
    for (int64_t rank = 0; rank < static_cast<int64_t>(words.size()); ++rank) {
      const int64_t set = HolderSet(shared_[i], rank);
      if (set >= 0) sets[set].push_back(rank);
    }
    for (const auto& [set, ranks] : sets) {
      const bool same = std::all_of(ranks.begin(), ranks.end(), [&](int64_t rank) {
        return words[rank][i] == words[ranks[0]][i];
      });
      if (!same) differences.push_back(absl::StrCat(i, ":", set));
    }
  }
  return absl::StrJoin(differences, " ");
}

std::string ReplicaCheck::Details(const std::string& differences,
                                  const std::vector<uint64_t>& hashes) const {
  std::string text = host_;
  const std::vector<std::string> list = absl::StrSplit(differences, ' ');
  for (const std::string& difference : list) {
    const std::vector<std::string> words = absl::StrSplit(difference, ':');
    size_t shared = 0;
    int64_t set = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[0], &shared) ||
        !absl::SimpleAtoi(words[1], &set) || shared >= shared_.size() ||
        HolderSet(shared_[shared], session_.rank()) != set) {
      continue;
    }
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].shared != shared) continue;
      absl::StrAppend(&text, "\n", difference, " ", HexText(hashes[i]), " ", pieces_[i].name);
    }
  }
  return text;
}

absl::Status ReplicaCheck::Verdict(int64_t done, const std::vector<std::string>& details) const {
  std::map<std::string, std::vector<Holder>> sets;
  for (size_t rank = 0; rank < details.size(); ++rank) {
    const std::vector<std::string> lines = absl::StrSplit(details[rank], '\n');
    for (size_t i = 1; i < lines.size(); ++i) {
      const std::vector<std::string> words = absl::StrSplit(lines[i], absl::MaxSplits(' ', 2));
      std::vector<Holder>& holders = sets[words[0]];
      if (holders.empty() || holders.back().rank != static_cast<int64_t>(rank)) {
        holders.push_back({static_cast<int64_t>(rank), lines[0], {}});
      }
      holders.back().pieces.emplace_back(words[1], words[2]);
    }
  }
  std::string text = absl::StrCat("after step ", done, " replicas are not the same:");
  for (const auto& [set, holders] : sets) absl::StrAppend(&text, "\n  ", SetText(holders));
  absl::StrAppend(&text, "\n  memory was overwritten, or a machine computes otherwise than the ",
                  "others; replicas of checkpoints were compared before they were saved");
  return absl::DataLossError(text);
}

absl::Status ReplicaCheck::Compare(int64_t done) {
  if (shared_.empty()) return absl::OkStatus();
  const std::vector<uint64_t> hashes = HashPieces();
  PLANC_ASSIGN_OR_RETURN(const std::vector<std::string> digests,
                         control_->Gather(kTag, Digests(hashes)));
  const std::string found = control_->rank() == 0 ? FindDifferences(digests) : "";
  PLANC_ASSIGN_OR_RETURN(const std::string differences, control_->Broadcast(kTag, found));
  if (differences.empty()) return absl::OkStatus();
  PLANC_ASSIGN_OR_RETURN(const std::vector<std::string> details,
                         control_->Gather(kTag, Details(differences, hashes)));
  const std::string verdict =
      control_->rank() == 0 ? EncodeStatus(Verdict(done, details)) : std::string();
  PLANC_ASSIGN_OR_RETURN(const std::string agreed, control_->Broadcast(kTag, verdict));
  return DecodeStatus(agreed);
}

absl::Status ReplicaCheck::CompareIfDue(int64_t done, bool saving) {
  const int64_t every = plan_.job.run().compare_every_steps();
  const bool due = every > 0 && done % every == 0;
  return saving || due ? Compare(done) : absl::OkStatus();
}

}  // namespace planc
