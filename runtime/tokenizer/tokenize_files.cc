#include "runtime/tokenizer/tokenize_files.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/document_reader.h"
#include "runtime/tokenizer/token_writer.h"
#include "schemas/status.h"

namespace planc {
namespace {

constexpr int64_t kBatchBytes = 256 * 1024;
// Batches of one round for each worker: enough that workers hardly wait for the last one.
constexpr int kBatchesPerWorker = 16;

// Megatron takes uint16 below 65500 tokens, else int32 (megatron/core/datasets/indexed_dataset.py).
TokenCode CodeFor(int64_t vocab, bool megatron) {
  if (megatron) return vocab < 65500 ? TokenCode::kU16 : TokenCode::kI32;
  return vocab <= 65536 ? TokenCode::kU16 : TokenCode::kU32;
}

// What became of one batch.
struct EncodedBatch {
  std::vector<int32_t> tokens;
  std::vector<int64_t> lengths;
  int64_t empty = 0;
  absl::Status status;
};

absl::Status EncodeDocument(const Tokenizer& tokenizer, const TokenizeOptions& options,
                            const Document& document, EncodeCache* cache, EncodedBatch* encoded) {
  PLANC_ASSIGN_OR_RETURN(const std::string text, DocumentText(document, options.json_key));
  if (text.empty()) {
    ++encoded->empty;
    return absl::OkStatus();
  }
  const size_t before = encoded->tokens.size();
  const absl::Status status = tokenizer.Encode(text, cache, &encoded->tokens);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(DocumentPlace(document), std::string(status.message())));
  }
  if (options.end_of_document.has_value()) encoded->tokens.push_back(*options.end_of_document);
  encoded->lengths.push_back(static_cast<int64_t>(encoded->tokens.size() - before));
  return absl::OkStatus();
}

EncodedBatch EncodeBatch(const Tokenizer& tokenizer, const TokenizeOptions& options,
                         const DocumentBatch& batch, EncodeCache* cache) {
  EncodedBatch encoded;
  for (const Document& document : batch) {
    encoded.status = EncodeDocument(tokenizer, options, document, cache, &encoded);
    if (!encoded.status.ok()) break;
  }
  return encoded;
}

// All batches, each by whichever worker comes first.
std::vector<EncodedBatch> EncodeRound(const Tokenizer& tokenizer, const TokenizeOptions& options,
                                      const std::vector<DocumentBatch>& round,
                                      std::vector<EncodeCache>* caches) {
  std::vector<EncodedBatch> encoded(round.size());
  std::atomic<size_t> next = 0;
  const auto work = [&](EncodeCache* cache) {
    for (size_t i = next++; i < round.size(); i = next++) {
      encoded[i] = EncodeBatch(tokenizer, options, round[i], cache);
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < caches->size(); ++i) threads.emplace_back(work, &(*caches)[i]);
  work(&(*caches)[0]);
  for (std::thread& thread : threads) thread.join();
  return encoded;
}

}  // namespace

absl::StatusOr<TokenizeSummary> TokenizeFiles(const Tokenizer& tokenizer,
                                              const TokenizeOptions& options) {
  PLANC_ASSIGN_OR_RETURN(DocumentReader reader,
                         DocumentReader::Open(options.inputs, options.all_json));
  TokenizeSummary summary;
  summary.code = CodeFor(tokenizer.vocab(), options.megatron);
  PLANC_ASSIGN_OR_RETURN(const std::unique_ptr<TokenWriter> writer,
                         TokenWriter::Create(options.output, options.megatron, summary.code));
  std::vector<EncodeCache> caches(static_cast<size_t>(std::max(1, options.workers)));
  const size_t most = caches.size() * kBatchesPerWorker;
  while (true) {
    std::vector<DocumentBatch> round;
    while (round.size() < most) {
      DocumentBatch batch = reader.Next(kBatchBytes);
      if (batch.empty() && reader.bytes_read() == reader.bytes()) break;
      round.push_back(std::move(batch));
    }
    if (round.empty()) break;
    for (const EncodedBatch& batch : EncodeRound(tokenizer, options, round, &caches)) {
      PLANC_RETURN_IF_ERROR(batch.status);
      PLANC_RETURN_IF_ERROR(writer->Append(batch.tokens, batch.lengths));
      summary.documents += static_cast<int64_t>(batch.lengths.size());
      summary.empty += batch.empty;
      summary.tokens += static_cast<int64_t>(batch.tokens.size());
    }
    if (options.progress) options.progress({reader.bytes_read(), reader.bytes(), summary.tokens});
  }
  PLANC_RETURN_IF_ERROR(writer->Finish());
  return summary;
}

}  // namespace planc
