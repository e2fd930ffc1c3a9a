#include "runtime/data/data_identity.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schemas/counted.h"
#include "schemas/status.h"

namespace planc {
namespace {

using Paths = google::protobuf::RepeatedPtrField<std::string>;

constexpr int64_t kBlockBytes = 16 << 10;
constexpr int64_t kMostBlocks = 64;         // of a file
constexpr int64_t kMostBlocksOfAll = 4096;  // of a list of files
constexpr int64_t kLeastBlocks = 2;         // of a file: its first and its last one

class Hash {
 public:
  Hash() : state_(XXH3_createState()) { XXH3_64bits_reset(state_); }
  ~Hash() { XXH3_freeState(state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  void Add(const void* data, int64_t bytes) {
    XXH3_64bits_update(state_, data, static_cast<size_t>(bytes));
  }
  void Add(int64_t number) { Add(&number, sizeof(number)); }
  uint64_t Value() const { return XXH3_64bits_digest(state_); }

 private:
  XXH3_state_t* const state_;
};

// Of the first `bytes` bytes at `data`.
uint64_t SampledChecksum(const char* data, int64_t bytes, int64_t blocks) {
  Hash hash;
  if (bytes <= blocks * kBlockBytes) {
    hash.Add(data, bytes);
    return hash.Value();
  }
  const int64_t last = bytes - kBlockBytes;
  for (int64_t i = 0; i < blocks; ++i) {
    // Of at most 2^63 bytes: the product of both would not fit.
    const int64_t begin = last / (blocks - 1) * i + last % (blocks - 1) * i / (blocks - 1);
    hash.Add(data + begin, kBlockBytes);
  }
  return hash.Value();
}

int64_t BytesOf(const TokenFile& file) { return file.tokens * TokenBytes(file.code); }

FileIdentity Identify(const TokenFile& file, const std::string& path, int64_t blocks) {
  const int64_t bytes = BytesOf(file);
  return {path, file.tokens, bytes, blocks, SampledChecksum(file.data(), bytes, blocks)};
}

std::string Text(const FileIdentity& file) {
  return absl::StrCat(file.file, " with ", Counted(file.tokens, "token"), " (xxh3 ",
                      absl::StrFormat("%016x", file.checksum), ")");
}

absl::StatusOr<std::unique_ptr<TokenStream>> Open(const proto::Job& job, const Paths& files,
                                                  const std::string& directory) {
  return TokenStream::Open({files.begin(), files.end()}, job.data().format(),
                           job.data().token_bytes(), directory);
}

}  // namespace

std::vector<FileIdentity> IdentifyFiles(const TokenStream& stream, const Paths& files) {
  const int64_t count = std::max<int64_t>(1, files.size());
  const int64_t blocks = std::clamp(kMostBlocksOfAll / count, kLeastBlocks, kMostBlocks);
  std::vector<FileIdentity> identities;
  for (int i = 0; i < files.size(); ++i) {
    identities.push_back(Identify(stream.files()[i], files[i], blocks));
  }
  return identities;
}

absl::StatusOr<DataIdentity> IdentifyData(const proto::Job& job, const std::string& directory) {
  PLANC_ASSIGN_OR_RETURN(const auto train, Open(job, job.data().train(), directory));
  PLANC_ASSIGN_OR_RETURN(const auto validation, Open(job, job.data().validation(), directory));
  return DataIdentity{IdentifyFiles(*train, job.data().train()),
                      IdentifyFiles(*validation, job.data().validation())};
}

uint64_t ChecksumOf(const DataIdentity& identity) {
  Hash hash;
  for (const std::vector<FileIdentity>* files : {&identity.train, &identity.validation}) {
    hash.Add(static_cast<int64_t>(files->size()));
    for (const FileIdentity& file : *files) {
      hash.Add(file.tokens);
      hash.Add(file.bytes);
      hash.Add(file.blocks);
      hash.Add(static_cast<int64_t>(file.checksum));
    }
  }
  return hash.Value();
}

const char* DataChangeName(DataChange change) {
  switch (change) {
    case DataChange::kUnknown:
      return "unknown";
    case DataChange::kSame:
      return "same";
    case DataChange::kAppended:
      return "appended";
    case DataChange::kReplaced:
      return "replaced";
  }
  return "?";
}

absl::StatusOr<int64_t> TrainingTokens(const proto::Job& job, const std::string& directory) {
  PLANC_ASSIGN_OR_RETURN(const auto stream, Open(job, job.data().train(), directory));
  return stream->tokens();
}

DataComparison CompareFiles(const std::vector<FileIdentity>& then, const TokenStream& stream,
                            const Paths& files) {
  const auto count = static_cast<size_t>(files.size());
  for (size_t i = 0; i < then.size(); ++i) {
    const FileIdentity& before = then[i];
    if (i >= count) return {DataChange::kReplaced, Text(before), "no such file"};
    const TokenFile& file = stream.files()[i];
    const FileIdentity now = Identify(file, files[static_cast<int>(i)], before.blocks);
    const bool begins_so =
        now.bytes >= before.bytes && now.tokens >= before.tokens &&
        before.bytes == before.tokens * TokenBytes(file.code) &&
        SampledChecksum(file.data(), before.bytes, before.blocks) == before.checksum;
    if (begins_so && now.bytes == before.bytes) continue;
    // What is appended to another file than the last moves the tokens of the files behind it.
    const bool last = i + 1 == then.size();
    return {begins_so && last ? DataChange::kAppended : DataChange::kReplaced, Text(before),
            Text(now)};
  }
  if (then.size() == count) return {DataChange::kSame, "", ""};
  const int64_t more = static_cast<int64_t>(count - then.size());
  return {DataChange::kAppended, Counted(static_cast<int64_t>(then.size()), "file"),
          absl::StrCat("the same and ", more, " more")};
}

absl::StatusOr<DataChanges> CompareData(const DataIdentity& then, const proto::Job& job,
                                        const std::string& directory) {
  DataChanges changes;
  const auto compare = [&](const std::vector<FileIdentity>& before, const Paths& files,
                           DataComparison* comparison) -> absl::Status {
    if (before.empty() && files.empty()) {
      comparison->change = DataChange::kSame;
      return absl::OkStatus();
    }
    PLANC_ASSIGN_OR_RETURN(const auto stream, Open(job, files, directory));
    *comparison = CompareFiles(before, *stream, files);
    return absl::OkStatus();
  };
  PLANC_RETURN_IF_ERROR(compare(then.train, job.data().train(), &changes.train));
  PLANC_RETURN_IF_ERROR(compare(then.validation, job.data().validation(), &changes.validation));
  return changes;
}

}  // namespace planc
