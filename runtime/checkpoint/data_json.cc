#include "runtime/checkpoint/data_json.h"

#include <string>
#include <utility>

namespace planc {
namespace {

bool ReadFiles(const Json& json, const char* name, std::vector<FileIdentity>* files) {
  const Json* const list = FindField(json, name);
  if (list == nullptr || !list->is_array()) return false;
  for (const Json& entry : *list) {
    FileIdentity file;
    if (!ReadField(entry, "file", &file.file) || !ReadField(entry, "tokens", &file.tokens) ||
        !ReadField(entry, "bytes", &file.bytes) || !ReadField(entry, "blocks", &file.blocks) ||
        !ReadHexField(entry, "xxh3_64", &file.checksum) || file.tokens < 0 ||
        file.bytes < file.tokens || file.blocks < 2 || file.blocks > 4096) {
      return false;
    }
    files->push_back(std::move(file));
  }
  return true;
}

}  // namespace

Json PositionJson(const DataPosition& position) {
  Json deals = Json::array();
  for (const DataDeal& deal : position.deals) {
    deals.push_back({{"first", deal.first},
                     {"epoch", deal.epoch},
                     {"place", deal.place},
                     {"windows", deal.windows},
                     {"cut", deal.cut},
                     {"seed", deal.seed}});
  }
  return {{"samples", position.samples}, {"tokens", position.tokens}, {"deals", std::move(deals)}};
}

bool ReadPosition(const Json& json, DataPosition* position) {
  const Json* const deals = FindField(json, "deals");
  if (!ReadField(json, "samples", &position->samples) ||
      !ReadField(json, "tokens", &position->tokens) || deals == nullptr || !deals->is_array()) {
    return false;
  }
  for (const Json& entry : *deals) {
    DataDeal& deal = position->deals.emplace_back();
    if (!ReadField(entry, "first", &deal.first) || !ReadField(entry, "epoch", &deal.epoch) ||
        !ReadField(entry, "place", &deal.place) || !ReadField(entry, "windows", &deal.windows) ||
        !ReadField(entry, "cut", &deal.cut) || !ReadField(entry, "seed", &deal.seed)) {
      return false;
    }
  }
  return CheckPosition(*position).ok();
}

bool ReadIdentity(const Json& json, DataIdentity* identity) {
  return ReadFiles(json, "train", &identity->train) &&
         ReadFiles(json, "validation", &identity->validation);
}

}  // namespace planc
