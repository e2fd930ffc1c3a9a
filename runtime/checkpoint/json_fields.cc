#include "runtime/checkpoint/json_fields.h"

#include <charconv>

#include "absl/strings/str_format.h"

namespace planc {
namespace {

constexpr size_t kHexDigits = 16;

// An integer that int64 holds.
bool ReadInteger(const Json& json, int64_t* value) {
  if (!json.is_number_integer()) return false;
  if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{INT64_MAX}) return false;
  *value = json.get<int64_t>();
  return true;
}

}  // namespace

const Json* FindField(const Json& object, const std::string& name) {
  if (!object.is_object()) return nullptr;
  const auto field = object.find(name);
  return field == object.end() ? nullptr : &*field;
}

bool ReadField(const Json& object, const std::string& name, int64_t* value) {
  const Json* const field = FindField(object, name);
  return field != nullptr && ReadInteger(*field, value);
}

bool ReadField(const Json& object, const std::string& name, bool* value) {
  const Json* const field = FindField(object, name);
  if (field == nullptr || !field->is_boolean()) return false;
  *value = field->get<bool>();
  return true;
}

bool ReadField(const Json& object, const std::string& name, std::string* value) {
  const Json* const field = FindField(object, name);
  if (field == nullptr || !field->is_string()) return false;
  *value = field->get<std::string>();
  return true;
}

bool ReadField(const Json& object, const std::string& name, std::vector<int64_t>* value) {
  const Json* const field = FindField(object, name);
  if (field == nullptr || !field->is_array()) return false;
  std::vector<int64_t> numbers;
  for (const Json& element : *field) {
    int64_t number = 0;
    if (!ReadInteger(element, &number) || number < 0) return false;
    numbers.push_back(number);
  }
  *value = numbers;
  return true;
}

std::string HexText(uint64_t value) { return absl::StrFormat("%016x", value); }

bool ReadHexField(const Json& object, const std::string& name, uint64_t* value) {
  std::string text;
  if (!ReadField(object, name, &text) || text.size() != kHexDigits) return false;
  const char* const end = text.data() + text.size();
  uint64_t number = 0;
  // As it is written: no capital letters, which would be a changed byte that nobody notices.
  if (std::from_chars(text.data(), end, number, 16).ptr != end || HexText(number) != text) {
    return false;
  }
  *value = number;
  return true;
}

}  // namespace planc
