#include "runtime/tokenizer/sentencepiece_model.h"

#include <dlfcn.h>
#include <sentencepiece_processor.h>

#include <string_view>

namespace planc {
namespace {

constexpr char kLibrary[] = "libsentencepiece.so.0";

// sentencepiece::util::Status, which is empty when all is well. It is returned through a hidden
// first argument, as the C++ ABI has it for types with a destructor.
struct Status {
  void* reason;
};
static_assert(sizeof(Status) == sizeof(sentencepiece::util::Status));

// The library's functions. Debian's library exports its own copy of Protocol Buffers, of another
// version than the one that planc links, so that a program linked with both does not start. It is
// loaded with its symbols kept to itself instead. X(member, result, arguments, symbol).
#define PLANC_SENTENCEPIECE_FUNCTIONS(X)                                                          \
  X(construct, void, (void* self), "_ZN13sentencepiece22SentencePieceProcessorC1Ev")              \
  X(destroy, void, (void* self), "_ZN13sentencepiece22SentencePieceProcessorD1Ev")                \
  X(load, void, (Status * status, void* self, std::string_view bytes),                            \
    "_ZN13sentencepiece22SentencePieceProcessor23LoadFromSerializedProtoESt17basic_string_viewIc" \
    "St11char_traitsIcEE")                                                                        \
  X(encode, void,                                                                                 \
    (Status * status, const void* self, std::string_view text, std::vector<int>* tokens),         \
    "_ZNK13sentencepiece22SentencePieceProcessor6EncodeESt17basic_string_viewIcSt11char_traitsIc" \
    "EEPSt6vectorIiSaIiEE")                                                                       \
  X(decode, void,                                                                                 \
    (Status * status, const void* self, const std::vector<int>& tokens, std::string* text),       \
    "_ZNK13sentencepiece22SentencePieceProcessor6DecodeERKSt6vectorIiSaIiEEPNSt7__cxx1112basic_"  \
    "stringIcSt11char_traitsIcESaIcEEE")                                                          \
  X(size, int, (const void* self), "_ZNK13sentencepiece22SentencePieceProcessor12GetPieceSizeEv") \
  X(eos, int, (const void* self), "_ZNK13sentencepiece22SentencePieceProcessor6eos_idEv")         \
  X(find, int, (const void* self, std::string_view piece),                                        \
    "_ZNK13sentencepiece22SentencePieceProcessor9PieceToIdESt17basic_string_viewIcSt11char_"      \
    "traitsIcEE")                                                                                 \
  X(piece, const std::string&, (const void* self, int token),                                     \
    "_ZNK13sentencepiece22SentencePieceProcessor9IdToPieceB5cxx11Ei")                             \
  X(reason, const char*, (const Status* status),                                                  \
    "_ZNK13sentencepiece4util6Status13error_messageEv")                                           \
  X(drop, void, (Status * status), "_ZN13sentencepiece4util6StatusD1Ev")

struct Functions {
#define PLANC_MEMBER(name, result, arguments, symbol) result(*name) arguments = nullptr;
  PLANC_SENTENCEPIECE_FUNCTIONS(PLANC_MEMBER)
#undef PLANC_MEMBER
};

// Once for each model; the library itself is loaded once and never unloaded.
bool LoadFunctions(Functions* functions, std::string* error) {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND | RTLD_NODELETE);
  if (library == nullptr) {
    *error = std::string(kLibrary) +
             " cannot be loaded (Debian's package libsentencepiece0): " + dlerror();
    return false;
  }
#define PLANC_FIND(name, result, arguments, symbol)                                        \
  functions->name = reinterpret_cast<decltype(functions->name)>(dlsym(library, symbol));   \
  if (functions->name == nullptr) {                                                        \
    *error = std::string(kLibrary) + " is of another version: it does not have " + symbol; \
    return false;                                                                          \
  }
  PLANC_SENTENCEPIECE_FUNCTIONS(PLANC_FIND)
#undef PLANC_FIND
  return true;
}

class Processor : public SentencePieceModel {
 public:
  explicit Processor(const Functions& functions) : call_(functions) { call_.construct(self_); }
  ~Processor() override { call_.destroy(self_); }
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  bool Load(const std::string& bytes, std::string* error) {
    Status status{};
    call_.load(&status, self_, bytes);
    return Check(&status, error);
  }
  bool Encode(const std::string& text, std::vector<int>* tokens,
              std::string* error) const override {
    Status status{};
    call_.encode(&status, self_, text, tokens);
    return Check(&status, error);
  }
  std::string Decode(const std::vector<int>& tokens) const override {
    std::string text;
    std::string ignored;
    Status status{};
    call_.decode(&status, self_, tokens, &text);
    return Check(&status, &ignored) ? text : "";
  }
  int size() const override { return call_.size(self_); }
  int eos() const override { return call_.eos(self_); }
  int Find(const std::string& piece) const override {
    const int token = call_.find(self_, piece);
    return call_.piece(self_, token) == piece ? token : -1;
  }

 private:
  bool Check(Status* status, std::string* error) const {
    const bool ok = status->reason == nullptr;
    if (!ok) *error = call_.reason(status);
    call_.drop(status);
    return ok;
  }

  const Functions call_;
  alignas(sentencepiece::SentencePieceProcessor) char self_[sizeof(
      sentencepiece::SentencePieceProcessor)];
};

}  // namespace

std::unique_ptr<SentencePieceModel> LoadSentencePiece(const std::string& bytes,
                                                      std::string* error) {
  Functions functions;
  if (!LoadFunctions(&functions, error)) return nullptr;
  auto processor = std::make_unique<Processor>(functions);
  if (!processor->Load(bytes, error)) return nullptr;
  return processor;
}

}  // namespace planc
