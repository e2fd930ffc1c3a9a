#ifndef PLANC_PLANC_KEYS_KEY_TEXT_H_
#define PLANC_PLANC_KEYS_KEY_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "compiler/spec/job_schema.h"

namespace planc {

// What a key accepts, in words: "whole number, k M G Ki Mi Gi", "none, selective or full", ...
std::string TypeText(const JobKey& key);

// The range of a key in words; "" if it has none.
std::string RangeText(const JobKey& key);

// What holds if the key is not given: "2 (default)", "from the preset", "required".
std::string UnsetText(const JobKey& key);

// The words of an enum with their meanings, which may be empty.
std::vector<std::pair<std::string, std::string>> ChoiceDocs(
    const google::protobuf::EnumDescriptor& type);

}  // namespace planc

#endif  // PLANC_PLANC_KEYS_KEY_TEXT_H_
