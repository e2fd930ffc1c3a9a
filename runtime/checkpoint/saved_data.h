#ifndef PLANC_RUNTIME_CHECKPOINT_SAVED_DATA_H_
#define PLANC_RUNTIME_CHECKPOINT_SAVED_DATA_H_

#include "runtime/data/data_identity.h"
#include "runtime/data/data_position.h"

namespace planc {

// What a checkpoint knows of the data of its run.
struct SavedData {
  DataPosition position;
  DataIdentity identity;
};

}  // namespace planc

#endif  // PLANC_RUNTIME_CHECKPOINT_SAVED_DATA_H_
