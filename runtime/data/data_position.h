#ifndef PLANC_RUNTIME_DATA_DATA_POSITION_H_
#define PLANC_RUNTIME_DATA_DATA_POSITION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace planc {

// How the windows of the training data are dealt out from one sample on; a sample is one sequence
// of a batch. In each epoch the order is that of PermutedIndex(.., windows, seed, epoch).
struct DataDeal {
  int64_t first = 0;    // the sample with which it begins, counted since the training began
  int64_t epoch = 0;    // of that sample
  int64_t place = 0;    // of that sample in its epoch
  int64_t windows = 0;  // of an epoch
  int64_t cut = 1;      // samples that each window is cut into, one after the other
  int64_t seed = 0;     // run.seed

  int64_t EpochSamples() const { return windows * cut; }
};
bool operator==(const DataDeal& a, const DataDeal& b);

// Where a training is in its data. Samples and tokens are counted over all runs of its chain.
struct DataPosition {
  int64_t samples = 0;  // trained on
  int64_t tokens = 0;   // trained on
  // In the order of `first`; the first one covers sample `samples`. One ends where the next begins.
  std::vector<DataDeal> deals;
};
bool operator==(const DataPosition& a, const DataPosition& b);

// Of a training that begins, with `windows` windows.
DataPosition FirstPosition(int64_t windows, int64_t seed);

// The deal that a sample belongs to. REQUIRES: sample >= deals[0].first.
const DataDeal& DealOf(const DataPosition& position, int64_t sample);
// The window of batch.sequence tokens that a sample is.
int64_t WindowOfSample(const DataPosition& position, int64_t sample);
// Passes over the data that are done before a sample: 1.25 is a quarter of the second.
double EpochsBefore(const DataPosition& position, int64_t sample);

// The position after `samples` more samples of `sequence` tokens.
DataPosition Advanced(const DataPosition& position, int64_t samples, int64_t sequence);

// OK when the numbers, of an origin that may be anything, are a position. Errors: DataLoss.
absl::Status CheckPosition(const DataPosition& position);

// What a job now finds, to go on from a position.
struct DataNow {
  int64_t windows = 0;
  int64_t sequence = 0;   // batch.sequence
  int64_t seed = 0;       // run.seed
  bool replaced = false;  // the data are not those of the position, not even the beginning of them
};
// Where that job goes on from `saved`, whose windows had `sequence` tokens. An epoch that was begun
// goes on with the windows that it has left, and no other ones: those of before, cut into several
// samples where batch.sequence has become a part of what it was. Changes count from the next epoch
// on. Where windows do not fit on those of before, the next epoch begins at once; with other data,
// epoch 0. `notices` receives a line with numbers for each change.
// Errors: DataLoss when `saved` is not a position in these data.
absl::StatusOr<DataPosition> GoOnFrom(const DataPosition& saved, int64_t sequence,
                                      const DataNow& now, std::vector<std::string>* notices);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_DATA_POSITION_H_
