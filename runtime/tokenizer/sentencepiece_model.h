#ifndef PLANC_RUNTIME_TOKENIZER_SENTENCEPIECE_MODEL_H_
#define PLANC_RUNTIME_TOKENIZER_SENTENCEPIECE_MODEL_H_

#include <memory>
#include <string>
#include <vector>

namespace planc {

// SentencePiece behind standard types: its header declares absl::string_view in its own way, so
// that it cannot be included beside Abseil's.
class SentencePieceModel {
 public:
  virtual ~SentencePieceModel() = default;
  // All functions may be called by several threads at once. False: `error` has the reason.
  virtual bool Encode(const std::string& text, std::vector<int>* tokens,
                      std::string* error) const = 0;
  virtual std::string Decode(const std::vector<int>& tokens) const = 0;
  virtual int size() const = 0;
  virtual int eos() const = 0;                           // -1: none
  virtual int Find(const std::string& piece) const = 0;  // -1: none
};

// From the bytes of a .model file. Null: `error` has the reason.
std::unique_ptr<SentencePieceModel> LoadSentencePiece(const std::string& bytes, std::string* error);

}  // namespace planc

#endif  // PLANC_RUNTIME_TOKENIZER_SENTENCEPIECE_MODEL_H_
