#include "compiler/spec/node.h"

namespace planc {

const Node* Node::Find(const std::string& key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Node* Node::Find(const std::string& key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->Find(key));
}

std::string KindName(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kNull:
      return "empty";
    case Node::Kind::kScalar:
      return "a single value";
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
  }
  return "unknown";
}

void MergeInto(Node& base, const Node& over) {
  if (base.kind != Node::Kind::kMap || over.kind != Node::Kind::kMap) {
    base = over;
    return;
  }
  for (const Node::Entry& entry : over.entries) {
    bool found = false;
    for (Node::Entry& existing : base.entries) {
      if (existing.key != entry.key) continue;
      existing.key_span = entry.key_span;
      MergeInto(existing.value, entry.value);
      found = true;
    }
    if (!found) base.entries.push_back(entry);
  }
}

}  // namespace planc
