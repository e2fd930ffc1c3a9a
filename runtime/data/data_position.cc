#include "runtime/data/data_position.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/data/permutation.h"
#include "schemas/counted.h"

namespace planc {
namespace {

// Numbers from files stay so far from the largest that sums and products of what is checked do not
// overflow.
constexpr int64_t kMost = int64_t{1} << 50;
constexpr int64_t kMostDeals = 1000;

bool InRange(int64_t value, int64_t least) { return value >= least && value <= kMost; }

// The deal from `sample` on of what `deal` gives it.
DataDeal From(const DataDeal& deal, int64_t sample) {
  const int64_t dealt = deal.place + (sample - deal.first);
  DataDeal rest = deal;
  rest.first = sample;
  rest.epoch = deal.epoch + dealt / deal.EpochSamples();
  rest.place = dealt % deal.EpochSamples();
  return rest;
}

}  // namespace

bool operator==(const DataDeal& a, const DataDeal& b) {
  const auto key = [](const DataDeal& deal) {
    return std::tie(deal.first, deal.epoch, deal.place, deal.windows, deal.cut, deal.seed);
  };
  return key(a) == key(b);
}

bool operator==(const DataPosition& a, const DataPosition& b) {
  return a.samples == b.samples && a.tokens == b.tokens && a.deals == b.deals;
}

DataPosition FirstPosition(int64_t windows, int64_t seed) {
  return {0, 0, {{0, 0, 0, windows, 1, seed}}};
}

const DataDeal& DealOf(const DataPosition& position, int64_t sample) {
  auto deal = position.deals.begin();
  while (deal + 1 != position.deals.end() && (deal + 1)->first <= sample) ++deal;
  return *deal;
}

int64_t WindowOfSample(const DataPosition& position, int64_t sample) {
  const DataDeal at = From(DealOf(position, sample), sample);
  const int64_t window =
      PermutedIndex(at.place / at.cut, at.windows, static_cast<uint64_t>(at.seed),
                    static_cast<uint64_t>(at.epoch));
  return window * at.cut + at.place % at.cut;
}

double EpochsBefore(const DataPosition& position, int64_t sample) {
  const DataDeal at = From(DealOf(position, sample), sample);
  return static_cast<double>(at.epoch) +
         static_cast<double>(at.place) / static_cast<double>(at.EpochSamples());
}

DataPosition Advanced(const DataPosition& position, int64_t samples, int64_t sequence) {
  DataPosition after = position;
  after.samples += samples;
  after.tokens += samples * sequence;
  // What is over is not needed to go on.
  while (after.deals.size() > 1 && after.deals[1].first <= after.samples) {
    after.deals.erase(after.deals.begin());
  }
  return after;
}

absl::Status CheckPosition(const DataPosition& position) {
  bool sound = InRange(position.samples, 0) && InRange(position.tokens, 0) &&
               !position.deals.empty() && position.deals.size() <= kMostDeals &&
               position.deals[0].first <= position.samples;
  for (size_t i = 0; i < position.deals.size() && sound; ++i) {
    const DataDeal& deal = position.deals[i];
    sound = InRange(deal.first, i == 0 ? 0 : position.deals[i - 1].first + 1) &&
            InRange(deal.epoch, 0) && InRange(deal.windows, 1) && InRange(deal.cut, 1) &&
            deal.windows <= kMost / deal.cut && deal.place >= 0 && deal.place < deal.EpochSamples();
  }
  return sound ? absl::OkStatus() : absl::DataLossError("the position in the data makes no sense");
}

absl::StatusOr<DataPosition> GoOnFrom(const DataPosition& saved, int64_t sequence,
                                      const DataNow& now, std::vector<std::string>* notices) {
  DataPosition next = {saved.samples, saved.tokens, {}};
  const DataDeal at = From(DealOf(saved, saved.samples), saved.samples);
  if (sequence <= 0 || sequence > kMost / at.EpochSamples()) {
    return absl::DataLossError("the position in the data makes no sense");
  }
  const DataDeal fresh = {saved.samples, at.epoch, 0, now.windows, 1, now.seed};
  const std::string done =
      absl::StrCat("after ", saved.samples, " samples, ", Counted(saved.tokens, "token"));
  if (now.replaced) {
    next.deals = {fresh};
    next.deals[0].epoch = 0;
    notices->push_back(absl::StrCat("data.train: ", done, ", other data than before are read from ",
                                    "the beginning: epoch 0 of ", Counted(now.windows, "window")));
    return next;
  }
  const bool same_seed = at.seed == now.seed;
  const bool same = same_seed && sequence == now.sequence && at.windows == now.windows;
  if (at.place == 0 || (same && at.cut == 1)) {
    next.deals = {at.place == 0 ? fresh : at};
    return next;
  }
  const int64_t left = at.EpochSamples() - at.place;  // samples of before
  if (sequence % now.sequence != 0) {
    next.deals = {fresh};
    next.deals[0].epoch = at.epoch + 1;
    notices->push_back(
        absl::StrCat("batch.sequence was ", sequence, ", and windows of ", now.sequence,
                     " do not fit on those ", "that are left: ", Counted(left, "window"), " (",
                     Counted(left * sequence, "token"), ") of epoch ", at.epoch,
                     " are not read in it, and epoch ", at.epoch + 1, " begins ", done));
    return next;
  }
  const int64_t parts = sequence / now.sequence;  // the product below fits: parts <= sequence
  DataDeal rest = at;
  rest.place *= parts;
  rest.cut *= parts;
  if (rest.EpochSamples() > now.windows) {
    return absl::DataLossError(absl::StrCat("the position in the data is one among ",
                                            Counted(rest.EpochSamples(), "window"),
                                            ", and the data have ", now.windows));
  }
  DataDeal then = fresh;
  then.first = saved.samples + left * parts;
  then.epoch = at.epoch + 1;
  next.deals = {rest, then};
  // Another start may have said so before.
  const DataDeal& planned = DealOf(saved, saved.samples + left);
  if (parts == 1 && planned == then) return next;
  notices->push_back(absl::StrCat(
      "data.train: epoch ", at.epoch, " goes on ", done, ", with the ", left * parts,
      " samples of ", now.sequence, " tokens that it has left; epoch ", then.epoch, " has ",
      Counted(now.windows, "window"), same_seed ? "" : " in the order of the new run.seed"));
  return next;
}

}  // namespace planc
