#ifndef PLANC_COMPILER_SPEC_NODE_H_
#define PLANC_COMPILER_SPEC_NODE_H_

#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"

namespace planc {

// One value of a job file, with the place where it is written.
struct Node {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  Span span;                // of the value; of its key for an empty value
  std::string text;         // kScalar: the value without quotes; kNull: `~` or `null`, if written
  bool quoted = false;      // kScalar: written with quotes or as a block, so always a text
  std::vector<Node> items;  // kSequence
  std::vector<Entry> entries;  // kMap, in file order, without duplicates

  // The value of `key` in a map, or nullptr.
  const Node* Find(const std::string& key) const;
  Node* Find(const std::string& key);
};

struct Node::Entry {
  std::string key;
  Span key_span;
  Node value;
};

// "a map", "a list", "empty" or "a text", for messages.
std::string KindName(Node::Kind kind);

// Puts the values of `over` on top of `base`: maps merge key by key, anything else is replaced.
void MergeInto(Node& base, const Node& over);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_NODE_H_
