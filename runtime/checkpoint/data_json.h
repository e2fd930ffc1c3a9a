#ifndef PLANC_RUNTIME_CHECKPOINT_DATA_JSON_H_
#define PLANC_RUNTIME_CHECKPOINT_DATA_JSON_H_

#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/checkpoint/json_fields.h"
#include "runtime/data/data_identity.h"
#include "runtime/data/data_position.h"

namespace planc {

// As JSON and back. Reading returns false when something is missing, of another type or not
// sensible.
Json PositionJson(const DataPosition& position);
bool ReadPosition(const Json& json, DataPosition* position);
// Adds the fields `train` and `validation`.
template <typename AnyJson>
void AddIdentity(const DataIdentity& identity, AnyJson* json);
bool ReadIdentity(const Json& json, DataIdentity* identity);

template <typename AnyJson>
void AddIdentity(const DataIdentity& identity, AnyJson* json) {
  const auto add = [&](const char* name, const std::vector<FileIdentity>& files) {
    AnyJson& list = (*json)[name] = AnyJson::array();
    for (const FileIdentity& file : files) {
      AnyJson entry;
      entry["file"] = file.file;
      entry["tokens"] = file.tokens;
      entry["bytes"] = file.bytes;
      entry["blocks"] = file.blocks;
      entry["xxh3_64"] = HexText(file.checksum);
      list.push_back(std::move(entry));
    }
  };
  add("train", identity.train);
  add("validation", identity.validation);
}

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_DATA_JSON_H_
