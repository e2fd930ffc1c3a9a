#include "schemas/plan.h"

namespace planc {

const char* MemoryKindName(MemoryKind kind) {
  switch (kind) {
#define PLANC_MEMORY_KIND_NAME(name, text) \
  case MemoryKind::name:                   \
    return text;
    PLANC_MEMORY_KINDS(PLANC_MEMORY_KIND_NAME)
#undef PLANC_MEMORY_KIND_NAME
  }
  return "?";
}

const char* LabelName(Label label) {
  switch (label) {
#define PLANC_LABEL_NAME(name, text) \
  case Label::name:                  \
    return text;
    PLANC_LABELS(PLANC_LABEL_NAME)
#undef PLANC_LABEL_NAME
  }
  return "?";
}

const char* StreamName(Stream stream) {
  switch (stream) {
#define PLANC_STREAM_NAME(name, text) \
  case Stream::name:                  \
    return text;
    PLANC_STREAMS(PLANC_STREAM_NAME)
#undef PLANC_STREAM_NAME
  }
  return "?";
}

const char* ProgramName(ProgramKind kind) {
  switch (kind) {
#define PLANC_PROGRAM_NAME(name, text) \
  case ProgramKind::name:              \
    return text;
    PLANC_PROGRAMS(PLANC_PROGRAM_NAME)
#undef PLANC_PROGRAM_NAME
  }
  return "?";
}

}  // namespace planc
