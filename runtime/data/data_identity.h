#ifndef PLANC_RUNTIME_DATA_DATA_IDENTITY_H_
#define PLANC_RUNTIME_DATA_DATA_IDENTITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/token_stream.h"
#include "schemas/job.pb.h"

namespace planc {

// What the tokens of one file are known by: how many, in how many bytes (headers do not count), and
// XXH3-64 of `blocks` blocks of 16 KiB that are spread evenly over these bytes, the first and the
// last among them, or of all bytes where that is less. Other contents between the blocks are not
// seen.
struct FileIdentity {
  std::string file;  // as the job names it
  int64_t tokens = 0;
  int64_t bytes = 0;
  int64_t blocks = 0;
  uint64_t checksum = 0;
};

// The files of data.train and data.validation, in the order of the job.
struct DataIdentity {
  std::vector<FileIdentity> train;
  std::vector<FileIdentity> validation;
};

// Reads the identity of a job's files. 64 blocks are read of a file, and fewer where there are more
// than 64 files, so that a list of them costs at most 64 MiB, or 32 KiB a file when that is more.
// `directory`: what relative paths start from. Errors: as TokenStream::Open.
absl::StatusOr<DataIdentity> IdentifyData(const proto::Job& job, const std::string& directory);
std::vector<FileIdentity> IdentifyFiles(
    const TokenStream& stream, const google::protobuf::RepeatedPtrField<std::string>& files);

// One number for all of it but the names, which may differ where the bytes are the same.
uint64_t ChecksumOf(const DataIdentity& identity);

enum class DataChange : uint8_t {
  kUnknown,   // of at least one side there is no identity
  kSame,      // as far as size and blocks tell
  kAppended,  // what was there is the beginning of what is there
  kReplaced,
};
// "unknown", "same", "appended", "replaced".
const char* DataChangeName(DataChange change);

struct DataComparison {
  DataChange change = DataChange::kUnknown;
  std::string then;  // for people, about the first file that is not the same: what it was
  std::string now;   // and what it is
};
// Compares files of before with what `stream` holds now, blocks of both included. Paths do not
// count.
DataComparison CompareFiles(const std::vector<FileIdentity>& then, const TokenStream& stream,
                            const google::protobuf::RepeatedPtrField<std::string>& files);

// Tokens of data.train. Errors: as TokenStream::Open.
absl::StatusOr<int64_t> TrainingTokens(const proto::Job& job, const std::string& directory);

// CompareFiles for both lists of a job.
struct DataChanges {
  DataComparison train;
  DataComparison validation;
};
// Errors: as TokenStream::Open.
absl::StatusOr<DataChanges> CompareData(const DataIdentity& then, const proto::Job& job,
                                        const std::string& directory);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_DATA_IDENTITY_H_
