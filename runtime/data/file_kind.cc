#include "runtime/data/file_kind.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "runtime/data/token_code.h"
#include "runtime/metrics/event_file.h"

namespace planc {
namespace {

// Bytes that are looked at; enough for the header of a tar archive.
constexpr size_t kHeadBytes = 512;

struct KindRow {
  size_t offset;
  std::string_view magic;
  const char* name;
  const char* advice;
};

constexpr KindRow kKinds[] = {
#define PLANC_FILE_KIND(offset, magic, name, advice) \
  {offset, std::string_view(magic, sizeof(magic) - 1), name, advice},
#include "runtime/data/file_kinds.def"
#undef PLANC_FILE_KIND
};

// A file under examination: its first bytes and its end.
struct Head {
  std::string_view bytes;  // at most kHeadBytes
  int64_t size = 0;        // of the whole file
  char last = 0;           // the file's last byte

  bool StartsWith(std::string_view start) const { return bytes.substr(0, start.size()) == start; }
  template <typename T>
  T At(size_t offset) const {
    return LoadUnaligned<T>(bytes.data() + offset);
  }
};

using Recognizer = bool (*)(const Head& head);

struct HeaderRow {
  Recognizer is;
  const char* name;
  const char* advice;
  bool is_text;
};

bool IsGzip(const Head& head) {  // the flags of RFC 1952 use five bits
  return head.StartsWith("\x1f\x8b\x08") && head.bytes.size() >= 18 && head.At<uint8_t>(3) < 32;
}

bool IsBzip2(const Head& head) {
  return head.StartsWith("BZh") && head.bytes.substr(4, 6) == "1AY&SY";
}

bool IsZip(const Head& head) {
  return head.StartsWith("PK\x03\x04") || head.StartsWith("PK\x05\x06");
}

// PyTorch's zip holds NAME/data.pkl as its first file.
bool IsTorch(const Head& head) {
  return IsZip(head) && head.bytes.substr(0, 300).find("/data.pkl") != std::string_view::npos;
}

bool IsNumpyArchive(const Head& head) {
  return IsZip(head) && head.bytes.substr(0, 300).find(".npy") != std::string_view::npos;
}

// i32 -1 and the length of the first message, which is padded to 8 bytes.
bool IsArrowStream(const Head& head) {
  if (head.bytes.size() < 16 || head.At<uint32_t>(0) != 0xffffffffu) return false;
  const int32_t length = head.At<int32_t>(4);
  return length > 0 && length % 8 == 0 && length <= head.size - 8;
}

bool IsSafetensors(const Head& head) {
  if (head.bytes.size() < 16) return false;
  const uint64_t length = head.At<uint64_t>(0);
  return length >= 2 && length <= static_cast<uint64_t>(head.size - 8) &&
         (head.bytes.substr(8, 2) == "{\"" || head.bytes.substr(8, 2) == "{}");
}

// Protocols 4 and 5 begin with a frame and its length; the others with an object. All end with '.'.
bool IsPickle(const Head& head) {
  if (head.bytes.size() < 12 || head.bytes[0] != '\x80' || head.last != '.') return false;
  const uint8_t protocol = head.At<uint8_t>(1);
  if (protocol == 4 || protocol == 5) {
    return head.bytes[2] == '\x95' && head.At<uint64_t>(3) <= static_cast<uint64_t>(head.size);
  }
  return (protocol == 2 || protocol == 3) &&
         std::string_view("c}](X").find(head.bytes[2]) != std::string_view::npos;
}

bool IsTfRecord(const Head& head) {
  return head.bytes.size() >= 16 &&
         head.At<uint32_t>(8) == MaskedCrc32c(std::string(head.bytes.substr(0, 8)));
}

// The byte order mark alone could be a token: text has zeros in one half of its characters.
bool IsUtf16(const Head& head) {
  if (!head.StartsWith("\xff\xfe") && !head.StartsWith("\xfe\xff")) return false;
  const size_t zero = head.bytes[0] == '\xff' ? 1 : 0;
  size_t zeros = 0;
  for (size_t i = 2 + zero; i < head.bytes.size(); i += 2) zeros += head.bytes[i] == 0 ? 1 : 0;
  return head.bytes.size() >= 4 && zeros * 4 >= head.bytes.size() / 2;
}

bool IsText(std::string_view bytes) {
  return bytes.size() >= 8 && std::none_of(bytes.begin(), bytes.end(), [](char c) {
           const unsigned char code = static_cast<unsigned char>(c);
           return code == 0x7f || (code < 0x20 && std::isspace(code) == 0);
         });
}

// The text without the blanks at its beginning; nothing when there is a byte that text has not.
std::string_view TextOf(const Head& head) {
  if (!IsText(head.bytes)) return {};
  const size_t begin = head.bytes.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : head.bytes.substr(begin);
}

bool IsJson(const Head& head) {
  const std::string_view text = TextOf(head);
  if (text.empty() || (text[0] != '{' && text[0] != '[')) return false;
  const size_t next = text.find_first_not_of(" \t\r\n", 1);
  if (next == std::string_view::npos) return false;
  if (text[0] == '[') return std::string_view("{[\"").find(text[next]) != std::string_view::npos;
  const size_t end = text[next] == '"' ? text.find('"', next + 1) : std::string_view::npos;
  const size_t colon = end == std::string_view::npos ? end : text.find_first_not_of(" \t", end + 1);
  return colon != std::string_view::npos && text[colon] == ':';
}

bool StartsWithWord(const Head& head, std::string_view word) {
  const std::string_view text = TextOf(head).substr(0, word.size());
  return std::equal(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

bool IsHtml(const Head& head) {
  return StartsWithWord(head, "<!doctype html") || StartsWithWord(head, "<html");
}

bool IsXml(const Head& head) { return StartsWithWord(head, "<?xml"); }

constexpr HeaderRow kHeaders[] = {
    {IsGzip, "compressed by gzip", "unpack it: `gzip -dk $0`", false},
    {IsBzip2, "compressed by bzip2", "unpack it: `bzip2 -dk $0`", false},
    {IsTorch, "a file of torch.save",
     "write its tokens with Python: `numpy.save('tokens.npy', torch.load('$0').numpy())`", false},
    {IsNumpyArchive, "a NumPy archive (.npz)",
     "write its tokens with Python: `numpy.save('tokens.npy', numpy.load('$0')['NAME'])`", false},
    {IsZip, "a zip archive", "unpack it: `unzip $0`", false},
    {IsArrowStream, "an Arrow stream, as Hugging Face datasets are stored",
     "take its text out, with Python: `datasets.Dataset.from_file('$0').to_json('text.jsonl')`, "
     "then `planc tokenize text.jsonl`",
     false},
    {IsSafetensors, "a safetensors file", "name a token file", false},
    {IsPickle, "a Python pickle",
     "write its tokens with Python: `numpy.save('tokens.npy', numpy.array(pickle.load(open('$0', "
     "'rb'))))`",
     false},
    {IsTfRecord, "a TFRecord file",
     "take its text out, with Python: `tensorflow.data.TFRecordDataset('$0')`, then `planc "
     "tokenize`",
     false},
    {IsUtf16, "UTF-16 text", "convert it: `iconv -f UTF-16 -t UTF-8 $0 > text.txt`", false},
    {IsJson, "JSON",
     "tokenize its text: `planc tokenize $0 --json-key=text --tokenizer=FILE -o "
     "OUT`",
     true},
    {IsHtml, "HTML", "take its text out: `html2text $0`", true},
    {IsXml, "XML", "take its text out: `xmllint --xpath 'string(/)' $0`", true},
};

}  // namespace

std::optional<FileKind> RecognizeFile(const MappedFile& file, const std::string& path) {
  if (file.size() == 0) return std::nullopt;
  Head head;
  head.bytes =
      std::string_view(file.data(), std::min<size_t>(static_cast<size_t>(file.size()), kHeadBytes));
  head.size = file.size();
  head.last = file.data()[file.size() - 1];
  for (const KindRow& row : kKinds) {
    if (head.bytes.size() < row.offset + row.magic.size()) continue;
    if (head.bytes.substr(row.offset, row.magic.size()) != row.magic) continue;
    return FileKind{row.name, absl::Substitute(row.advice, path), false};
  }
  for (const HeaderRow& row : kHeaders) {
    if (row.is(head)) return FileKind{row.name, absl::Substitute(row.advice, path), row.is_text};
  }
  return std::nullopt;
}

std::string RefusalOfKind(const std::string& path, const FileKind& kind,
                          const std::string& expected) {
  return absl::StrCat(path, ": is ", kind.name, ", not ", expected, "; ", kind.advice);
}

}  // namespace planc
