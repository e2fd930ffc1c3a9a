#ifndef PLANC_PLANC_KEYS_JOB_REFERENCE_H_
#define PLANC_PLANC_KEYS_JOB_REFERENCE_H_

#include <string>

namespace planc {

// The JSON Schema (draft-07) of the job file, which editors read: all keys with their types,
// ranges, defaults and meanings.
std::string JobJsonSchema();

// docs/job_reference.md: the same in Markdown, with the model presets, the devices and all
// diagnostics.
std::string JobReferenceMarkdown();

}  // namespace planc

#endif  // PLANC_PLANC_KEYS_JOB_REFERENCE_H_
