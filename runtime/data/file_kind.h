#ifndef PLANC_RUNTIME_DATA_FILE_KIND_H_
#define PLANC_RUNTIME_DATA_FILE_KIND_H_

#include <optional>
#include <string>

#include "runtime/data/mapped_file.h"

namespace planc {

// What a file is that holds neither plain text nor plain tokens.
struct FileKind {
  std::string name;      // "compressed by gzip"
  std::string advice;    // how to read it, with the command
  bool is_text = false;  // JSON, HTML, XML: text, but not text to train on as it is
};

// Recognizes a file by its beginning (file_kinds.def; formats without a fixed beginning by the
// structure of their header). `path` stands in the advice. Nothing when the file may be what
// it was named for. A flat file of tokens is mistaken with a chance below 1e-6 for each kind: that
// its first tokens are the bytes looked for.
std::optional<FileKind> RecognizeFile(const MappedFile& file, const std::string& path);

// "PATH: is KIND, not TOKENS: ADVICE", the words of a refusal.
std::string RefusalOfKind(const std::string& path, const FileKind& kind,
                          const std::string& expected);

}  // namespace planc

#endif  // PLANC_RUNTIME_DATA_FILE_KIND_H_
