#include "compiler/spec/value_fix.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/spec/parse_value.h"
#include "compiler/spec/scalar.h"

namespace planc {
namespace {

// A unit as people write it, in small letters, and as a job file has it.
struct UnitWord {
  const char* words;  // between blanks
  const char* suffix;
};

constexpr UnitWord kByteWords[] = {
    {" b byte bytes ", "B"}, {" k kb ", "kB"},      {" m mb ", "MB"},      {" g gb ", "GB"},
    {" t tb ", "TB"},        {" ki kib ", "KiB"},   {" mi mib ", "MiB"},   {" gi gib ", "GiB"},
    {" ti tib ", "TiB"},     {" gigabytes ", "GB"}, {" megabytes ", "MB"}, {" terabytes ", "TB"}};
constexpr UnitWord kSecondWords[] = {{" s sec secs second seconds ", "s"},
                                     {" m min mins minute minutes ", "m"},
                                     {" h hr hrs hour hours ", "h"},
                                     {" d day days ", "d"}};
constexpr UnitWord kCountWords[] = {{" k thousand ", "k"},
                                    {" m mio mil million ", "M"},
                                    {" g b bn billion ", "G"},
                                    {" ki ", "Ki"},
                                    {" mi ", "Mi"},
                                    {" gi ", "Gi"}};

template <size_t kSize>
std::string Lookup(const UnitWord (&table)[kSize], const std::string& word) {
  for (const UnitWord& row : table) {
    if (absl::StrContains(row.words, absl::StrCat(" ", word, " "))) return row.suffix;
  }
  return "";
}

std::string SuffixFor(proto::Unit unit, const std::string& word) {
  switch (unit) {
    case proto::UNIT_BYTES:
      return Lookup(kByteWords, word);
    case proto::UNIT_SECONDS:
      return Lookup(kSecondWords, word);
    case proto::UNIT_NONE:
    case proto::UNIT_PATH:
      return "";
    default:
      return Lookup(kCountWords, word);
  }
}

// "1_000", "1,000", "16 gb" and "10 minutes" as a job file has them; "" for no such number.
std::string PlainNumber(const std::string& text, proto::Unit unit) {
  size_t end = 0;
  std::string digits;
  while (end < text.size() && (absl::ascii_isdigit(static_cast<unsigned char>(text[end])) ||
                               text[end] == '.' || text[end] == ',' || text[end] == '_')) {
    if (text[end] != ',' && text[end] != '_') digits += text[end];
    ++end;
  }
  const std::string word = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text.substr(end)));
  if (digits.empty()) return "";
  if (word.empty()) return digits;
  const std::string suffix = SuffixFor(unit, word);
  return suffix.empty() ? "" : absl::StrCat(digits, suffix);
}

// "10%" and "0,1" as decimal numbers.
std::string PlainReal(const std::string& text) {
  std::string number = text;
  std::replace(number.begin(), number.end(), ',', '.');
  double value = 0;
  if (absl::EndsWith(number, "%")) {
    number.pop_back();
    if (absl::SimpleAtod(number, &value)) return FormatReal(value / 100);
  }
  return number;
}

std::string PlainBoolean(const std::string& text) {
  const std::string word = absl::AsciiStrToLower(text);
  for (const char* yes : {"yes", "on", "y", "true", "1", "enabled"}) {
    if (word == yes) return "true";
  }
  for (const char* no : {"no", "off", "n", "false", "0", "disabled"}) {
    if (word == no) return "false";
  }
  return "";
}

// The readings of one scalar for the type of `key`, the most literal first.
std::vector<std::string> ReadingsOf(const JobKey& key, const std::string& text) {
  using google::protobuf::FieldDescriptor;
  switch (key.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return {text, PlainNumber(text, key.key->unit())};
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return {text, PlainReal(text)};
    case FieldDescriptor::CPPTYPE_BOOL:
      return {PlainBoolean(text)};
    default:
      return {text};
  }
}

// The entries of a list that was written as one text.
std::string AsList(const std::string& text) {
  std::vector<std::string> entries;
  for (const absl::string_view piece :
       absl::StrSplit(text, absl::ByAnyChar(", \t"), absl::SkipEmpty())) {
    entries.emplace_back(piece);
  }
  return absl::StrCat("[", absl::StrJoin(entries, ", "), "]");
}

}  // namespace

std::string ValueFix(const JobKey& key, const Node& node) {
  std::vector<std::string> readings;
  if (node.kind == Node::Kind::kScalar && node.text.size() < 200) {
    readings = key.field->is_repeated() ? std::vector<std::string>{AsList(node.text)}
                                        : ReadingsOf(key, node.text);
  } else if (node.kind == Node::Kind::kSequence && node.items.size() == 1 &&
             !key.field->is_repeated()) {
    readings = ReadingsOf(key, node.items[0].text);
  } else if (node.kind == Node::Kind::kSequence && key.field->is_repeated()) {
    // One entry of the list may be a list itself.
    std::vector<std::string> texts;
    for (const Node& item : node.items) {
      for (const Node& inner : item.items) texts.push_back(inner.text);
      if (item.items.empty()) texts.push_back(item.text);
    }
    readings = {absl::StrCat("[", absl::StrJoin(texts, ", "), "]")};
  }
  for (const std::string& reading : readings) {
    const bool unchanged = reading == node.text && !node.quoted;
    if (reading.empty() || unchanged || !IsValueOf(key, reading)) continue;
    const std::string written = absl::StrCat("write `", key.field->name(), ": ", reading, "`");
    if (node.quoted && reading == node.text) return absl::StrCat(written, ", without quotes");
    // A size of 16 gb may be meant in powers of 1024.
    const std::string binary = absl::StrCat(reading.substr(0, reading.size() - 1), "iB");
    if (key.key->unit() == proto::UNIT_BYTES && IsValueOf(key, binary)) {
      return absl::StrCat(written, " (powers of 1000) or `", binary, "` (powers of 1024)");
    }
    return written;
  }
  return "";
}

}  // namespace planc
