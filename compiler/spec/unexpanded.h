#ifndef PLANC_COMPILER_SPEC_UNEXPANDED_H_
#define PLANC_COMPILER_SPEC_UNEXPANDED_H_

#include <optional>
#include <string>

namespace planc {

// What a shell, a template or a storage library would make of a path.
struct Unexpanded {
  std::string what;  // "$HOME is not expanded"
  std::string fix;
};

// Whether `path` is written for a program that expands it; nullopt for a plain path.
std::optional<Unexpanded> FindUnexpanded(const std::string& path);

}  // namespace planc

#endif  // PLANC_COMPILER_SPEC_UNEXPANDED_H_
