#include "tests/tidy_rules.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace planc {
namespace {

constexpr int kMaximumColumns = 100;
constexpr int kMaximumLines = 500;

bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

bool EndsWith(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

std::string FirstFolder(const std::string& path) {
  const size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool IsBuildFile(const std::string& path) { return path == "BUILD" || EndsWith(path, "/BUILD"); }

bool IsScript(const TidyFile& file) {
  return !file.lines.empty() && StartsWith(file.lines[0], "#!");
}

// Files that people write by hand as code, so that the layout rules hold for them.
bool IsSource(const TidyFile& file) {
  return IsCppFile(file.path) || IsBuildFile(file.path) || IsScript(file) ||
         EndsWith(file.path, ".bzl") || EndsWith(file.path, ".proto");
}

bool IsHeader(const std::string& path) { return EndsWith(path, ".h") || EndsWith(path, ".cuh"); }

int Columns(const std::string& line) {
  return static_cast<int>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

std::string GuardOf(const std::string& path) {
  std::string guard = "PLANC_";
  for (const char c : path) {
    const bool word = isalnum(static_cast<unsigned char>(c)) != 0;
    guard += word ? static_cast<char>(toupper(static_cast<unsigned char>(c))) : '_';
  }
  return guard + "_";
}

// The folders whose headers a folder may include; a folder that is not listed may include all.
const std::map<std::string, std::set<std::string>>& AllowedFolders() {
  static const auto* const allowed = new std::map<std::string, std::set<std::string>>{
      {"schemas", {"schemas"}},
      {"compiler", {"schemas", "compiler"}},
      {"kernels", {"schemas", "kernels"}},
      {"runtime", {"schemas", "kernels", "runtime"}},
  };
  return *allowed;
}

const std::set<std::string>& OurFolders() {
  static const auto* const folders =
      new std::set<std::string>{"schemas", "compiler", "kernels", "runtime", "planc", "tests"};
  return *folders;
}

// A library's headers, and the paths that may include them.
struct Confinement {
  std::string headers;  // regular expression
  std::vector<std::string> homes;
};

const std::vector<Confinement>& Confinements() {
  static const auto* const confinements = new std::vector<Confinement>{
      {"yaml-cpp/.*", {"compiler/spec/", "planc/version", "third_party/"}},
      {"gloo/.*", {"runtime/process_group/", "planc/version", "third_party/"}},
      {"(oneapi/dnnl/)?dnnl.*", {"kernels/", "planc/version", "third_party/"}},
      {"glog/.*\\.h", {""}},
  };
  return *confinements;
}

// Where exceptions of other libraries are turned into absl::Status.
const std::vector<std::string>& ExceptionBoundaries() {
  static const auto* const paths = new std::vector<std::string>{
      "compiler/spec/yaml_reader.cc",
      "runtime/process_group/gloo",
      "kernels/onednn",
  };
  return *paths;
}

bool IsUnderAny(const std::string& path, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&path](const std::string& prefix) { return StartsWith(path, prefix); });
}

void CheckOneInclude(const TidyFile& file, int line, const std::string& header,
                     TidyViolations* violations) {
  const std::string folder = FirstFolder(file.path);
  const auto allowed = AllowedFolders().find(folder);
  const std::string target = FirstFolder(header);
  if (allowed != AllowedFolders().end() && OurFolders().count(target) != 0 &&
      allowed->second.count(target) == 0) {
    violations->push_back({file.path, line, folder + " must not include " + target});
  }
  for (const Confinement& confinement : Confinements()) {
    if (std::regex_match(header, std::regex(confinement.headers)) &&
        !IsUnderAny(file.path, confinement.homes)) {
      violations->push_back({file.path, line, header + " must not be included here"});
    }
  }
  if (header == "glog/logging.h" && IsHeader(file.path)) {
    violations->push_back({file.path, line, "glog belongs in .cc files"});
  }
}

// The package of `path`: the folder of the nearest BUILD file above it, or nullptr.
const TidyFile* BuildFileOf(const std::map<std::string, const TidyFile*>& build_files,
                            const std::string& path, std::string* name_in_package) {
  for (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const auto found = build_files.find(path.substr(0, slash));
    if (found != build_files.end()) {
      *name_in_package = path.substr(slash + 1);
      return found->second;
    }
  }
  return nullptr;
}

bool Mentions(const TidyFile& file, const std::string& text) {
  return std::any_of(file.lines.begin(), file.lines.end(), [&text](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
}

}  // namespace

TidyFile TidyFile::FromText(std::string path, const std::string& text) {
  TidyFile file{std::move(path), {}};
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    file.lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return file;
}

std::string TidyViolation::ToString() const {
  return path + ":" + std::to_string(line) + ": " + message;
}

bool IsCppFile(const std::string& path) {
  for (const char* const suffix : {".cc", ".h", ".cu", ".cuh", ".inc", ".def"}) {
    if (EndsWith(path, suffix)) return true;
  }
  return false;
}

void CheckLayout(const TidyFile& file, TidyViolations* violations) {
  if (!IsSource(file)) return;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const int number = static_cast<int>(i) + 1;
    if (Columns(line) > kMaximumColumns && line.find("://") == std::string::npos) {
      violations->push_back(
          {file.path, number,
           std::to_string(Columns(line)) + " columns; at most " + std::to_string(kMaximumColumns)});
    }
    if (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) {
      violations->push_back({file.path, number, "trailing blank"});
    }
    if (line.find('\t') != std::string::npos) {
      violations->push_back({file.path, number, "tab"});
    }
  }
  const int lines = static_cast<int>(file.lines.size());
  if (lines > kMaximumLines) {
    violations->push_back(
        {file.path, lines,
         std::to_string(lines) + " lines; at most " + std::to_string(kMaximumLines)});
  }
}

void CheckIncludeGuard(const TidyFile& file, TidyViolations* violations) {
  if (!IsHeader(file.path)) return;
  const std::string guard = GuardOf(file.path);
  // A Highway header is read once per target, under a guard that toggles.
  if (EndsWith(file.path, "-inl.h")) {
    if (!Mentions(file, guard)) violations->push_back({file.path, 0, "no include guard " + guard});
    return;
  }
  std::vector<size_t> directives;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    if (StartsWith(file.lines[i], "#")) directives.push_back(i);
  }
  const bool guarded = directives.size() >= 3 && file.lines[directives[0]] == "#ifndef " + guard &&
                       file.lines[directives[1]] == "#define " + guard &&
                       file.lines[directives.back()] == "#endif  // " + guard;
  if (!guarded) violations->push_back({file.path, 0, "no include guard " + guard});
}

void CheckIncludes(const TidyFile& file, TidyViolations* violations) {
  if (!IsCppFile(file.path)) return;
  static const auto* const pattern = new std::regex("^\\s*#\\s*include\\s*[\"<]([^\">]+)[\">].*");
  bool messages = false;
  int glog_line = 0;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_match(file.lines[i], match, *pattern)) continue;
    const int line = static_cast<int>(i) + 1;
    CheckOneInclude(file, line, match[1], violations);
    messages = messages || EndsWith(match[1], ".pb.h");
    if (match[1] == "glog/logging.h") glog_line = line;
  }
  if (messages && glog_line != 0) {
    violations->push_back({file.path, glog_line, "glog beside a .pb.h: their macros clash"});
  }
}

void CheckWords(const TidyFile& file, TidyViolations* violations) {
  // Written in two halves, so that this file passes.
  static const auto* const unfinished = new std::regex(
      "\\b(TO"
      "DO|FIX"
      "ME|XX"
      "X)\\b");
  static const auto* const environment = new std::regex("\\b(secure_)?getenv\\b|\\benviron\\b");
  static const auto* const exception = new std::regex("\\b(throw|try|catch)\\b");
  for (size_t i = 0; i < file.lines.size(); ++i) {
    std::smatch match;
    if (IsSource(file) && std::regex_search(file.lines[i], match, *unfinished)) {
      violations->push_back(
          {file.path, static_cast<int>(i) + 1, match.str() + " marks unfinished work"});
    }
  }
  if (!IsCppFile(file.path)) return;
  const std::vector<std::string> code = CodeOnly(file.lines);
  for (size_t i = 0; i < code.size(); ++i) {
    std::smatch match;
    const int line = static_cast<int>(i) + 1;
    if (!StartsWith(file.path, "runtime/launch/") &&
        std::regex_search(code[i], match, *environment)) {
      violations->push_back({file.path, line, match.str() + " outside runtime/launch"});
    }
    if (!IsUnderAny(file.path, ExceptionBoundaries()) &&
        std::regex_search(code[i], match, *exception)) {
      violations->push_back({file.path, line, match.str() + ": planc has no exceptions"});
    }
  }
}

void CheckBuildFiles(const std::vector<TidyFile>& files, TidyViolations* violations) {
  std::map<std::string, const TidyFile*> build_files;
  for (const TidyFile& file : files) {
    if (!EndsWith(file.path, "/BUILD")) continue;
    build_files[file.path.substr(0, file.path.rfind('/'))] = &file;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (file.lines[i].find("glob(") != std::string::npos) {
        violations->push_back({file.path, static_cast<int>(i) + 1, "list the files, no glob"});
      }
    }
  }
  for (const TidyFile& file : files) {
    if (!IsCppFile(file.path) && !EndsWith(file.path, ".proto")) continue;
    std::string name;
    const TidyFile* const build_file = BuildFileOf(build_files, file.path, &name);
    if (build_file == nullptr) {
      violations->push_back({file.path, 0, "no BUILD file above it"});
    } else if (!Mentions(*build_file, "\"" + name + "\"")) {
      violations->push_back({file.path, 0, "not listed in " + build_file->path});
    }
  }
}

TidyViolations CheckTree(const std::vector<TidyFile>& files) {
  TidyViolations violations;
  for (const TidyFile& file : files) {
    CheckLayout(file, &violations);
    CheckFunctionLength(file, &violations);
    CheckIncludeGuard(file, &violations);
    CheckIncludes(file, &violations);
    CheckWords(file, &violations);
  }
  CheckBuildFiles(files, &violations);
  std::sort(violations.begin(), violations.end(),
            [](const TidyViolation& a, const TidyViolation& b) {
              return std::tie(a.path, a.line, a.message) < std::tie(b.path, b.line, b.message);
            });
  return violations;
}

}  // namespace planc
