#ifndef PLANC_RUNTIME_CHECKPOINT_JSON_FIELDS_H_
#define PLANC_RUNTIME_CHECKPOINT_JSON_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace planc {

// Reading JSON of unknown origin: each function returns false when the field is missing or of
// another type, and leaves `value` alone.
using Json = nlohmann::json;

// The field itself, or null.
const Json* FindField(const Json& object, const std::string& name);
bool ReadField(const Json& object, const std::string& name, int64_t* value);
bool ReadField(const Json& object, const std::string& name, bool* value);
bool ReadField(const Json& object, const std::string& name, std::string* value);
// Numbers that are not negative.
bool ReadField(const Json& object, const std::string& name, std::vector<int64_t>* value);

// 16 hexadecimal digits, without capital letters.
std::string HexText(uint64_t value);
bool ReadHexField(const Json& object, const std::string& name, uint64_t* value);

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_JSON_FIELDS_H_
