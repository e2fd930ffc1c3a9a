#ifndef PLANC_RUNTIME_TOKENIZER_DOCUMENT_READER_H_
#define PLANC_RUNTIME_TOKENIZER_DOCUMENT_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/mapped_file.h"

namespace planc {

// One document in a mapped file.
struct Document {
  const std::string* path = nullptr;
  int64_t line = 0;  // from 1; 0: the whole file is the document
  std::string_view bytes;
};

// Documents that one worker encodes at a time.
using DocumentBatch = std::vector<Document>;

// Cuts files into documents: whole files of text, lines of JSON files.
class DocumentReader {
 public:
  // Errors: InvalidArgument naming each file that cannot be opened or is no text (file_kind.h).
  static absl::StatusOr<DocumentReader> Open(const std::vector<std::string>& paths, bool all_json);

  // The next documents, about `bytes` bytes of them; empty at the end. Blank lines are skipped.
  DocumentBatch Next(int64_t bytes);
  int64_t bytes() const { return bytes_; }  // of all files
  int64_t bytes_read() const { return bytes_read_; }

 private:
  struct Input {
    std::string path;
    MappedFile file;
    bool json = false;
  };

  std::vector<std::unique_ptr<Input>> inputs_;
  size_t input_ = 0;    // being read
  int64_t offset_ = 0;  // in it
  int64_t line_ = 1;
  int64_t bytes_ = 0;
  int64_t bytes_read_ = 0;
};

// The text of a document: of a JSON line, its member `key`. Errors: InvalidArgument with file and
// line.
absl::StatusOr<std::string> DocumentText(const Document& document, const std::string& key);

// "PATH:LINE: " or "PATH: ", for errors about the document.
std::string DocumentPlace(const Document& document);

}  // namespace planc

#endif  // PLANC_RUNTIME_TOKENIZER_DOCUMENT_READER_H_
