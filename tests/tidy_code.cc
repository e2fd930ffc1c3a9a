// Reading C++ well enough for the tidy rules: what is code, and where functions begin and end.
#include <cctype>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/tidy_rules.h"

namespace planc {
namespace {

constexpr int kMaximumFunctionLines = 70;

// Blanks out everything but code, keeping line and column positions.
class CodeFilter {
 public:
  explicit CodeFilter(const std::vector<std::string>& lines) : lines_(lines) {}

  std::vector<std::string> Run() {
    std::vector<std::string> result;
    for (const std::string& line : lines_) {
      result.push_back(Line(line));
    }
    return result;
  }

 private:
  std::string Line(const std::string& line) {
    std::string code(line.size(), ' ');
    size_t at = 0;
    const size_t first = line.find_first_not_of(" \t");
    const bool starts_directive =
        !in_comment_ && raw_end_.empty() && first != std::string::npos && line[first] == '#';
    if (starts_directive || in_directive_) {
      in_directive_ = !line.empty() && line.back() == '\\';
      return code;
    }
    while (at < line.size()) {
      at = Step(line, at, &code);
    }
    return code;
  }

  // Consumes the token at `at` and returns where the next one starts.
  size_t Step(const std::string& line, size_t at, std::string* code) {
    if (in_comment_) {
      const size_t end = line.find("*/", at);
      in_comment_ = end == std::string::npos;
      return in_comment_ ? line.size() : end + 2;
    }
    if (!raw_end_.empty()) {
      return SkipRawString(line, at);
    }
    if (line.compare(at, 2, "//") == 0) return line.size();
    if (line.compare(at, 2, "/*") == 0) {
      in_comment_ = true;
      return at + 2;
    }
    const bool after_word = at > 0 && (isalnum(static_cast<unsigned char>(line[at - 1])) != 0);
    if (line.compare(at, 2, "R\"") == 0 && !after_word) {
      const size_t open = line.find('(', at);
      if (open != std::string::npos) {
        raw_end_ = ")" + line.substr(at + 2, open - at - 2) + "\"";
        return SkipRawString(line, open + 1);
      }
    }
    if (line[at] == '"' || (line[at] == '\'' && !after_word)) {
      return SkipLiteral(line, at);
    }
    (*code)[at] = line[at];
    return at + 1;
  }

  size_t SkipRawString(const std::string& line, size_t at) {
    const size_t end = line.find(raw_end_, at);
    if (end == std::string::npos) return line.size();
    const size_t next = end + raw_end_.size();
    raw_end_.clear();
    return next;
  }

  static size_t SkipLiteral(const std::string& line, size_t at) {
    const char quote = line[at];
    for (++at; at < line.size() && line[at] != quote; ++at) {
      if (line[at] == '\\') ++at;
    }
    return at + 1;
  }

  const std::vector<std::string>& lines_;
  bool in_comment_ = false;
  bool in_directive_ = false;
  std::string raw_end_;  // the end of the raw string we are in
};

bool IsWordCharacter(char c) { return isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool HasWord(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool starts = at == 0 || !IsWordCharacter(text[at - 1]);
    const bool ends = end >= text.size() || !IsWordCharacter(text[end]);
    if (starts && ends) return true;
  }
  return false;
}

enum class BlockKind { kScope, kFunction, kOther };

// What the block after `head` is, where `head` is the text since the last ';' or brace.
BlockKind KindOfBlock(const std::string& head, bool in_scope) {
  if (!in_scope) return BlockKind::kOther;
  const bool calls = head.find('(') != std::string::npos;
  if (HasWord(head, "namespace") || HasWord(head, "extern")) return BlockKind::kScope;
  if (!calls && (HasWord(head, "class") || HasWord(head, "struct") || HasWord(head, "union"))) {
    return BlockKind::kScope;
  }
  const size_t last = head.find_last_not_of(' ');
  const bool initializer = last != std::string::npos && head[last] == '=';
  return calls && !initializer ? BlockKind::kFunction : BlockKind::kOther;
}

struct Block {
  BlockKind kind;
  int first_line;
};

}  // namespace

std::vector<std::string> CodeOnly(const std::vector<std::string>& lines) {
  return CodeFilter(lines).Run();
}

void CheckFunctionLength(const TidyFile& file, TidyViolations* violations) {
  if (!IsCppFile(file.path)) return;
  const std::vector<std::string> code = CodeOnly(file.lines);
  std::vector<Block> blocks;
  std::string head;
  int head_line = 0;
  for (size_t i = 0; i < code.size(); ++i) {
    const int line = static_cast<int>(i) + 1;
    for (const char c : code[i]) {
      if (c == '{') {
        const bool in_scope = blocks.empty() || blocks.back().kind == BlockKind::kScope;
        blocks.push_back({KindOfBlock(head, in_scope), head_line == 0 ? line : head_line});
      } else if (c == '}' && !blocks.empty()) {
        const Block block = blocks.back();
        blocks.pop_back();
        const int length = line - block.first_line + 1;
        if (block.kind == BlockKind::kFunction && length > kMaximumFunctionLines) {
          violations->push_back({file.path, block.first_line,
                                 "function of " + std::to_string(length) + " lines; at most " +
                                     std::to_string(kMaximumFunctionLines)});
        }
      }
      if (c == '{' || c == '}' || c == ';') {
        head.clear();
        head_line = 0;
      } else if (c != ' ' || !head.empty()) {
        if (head.empty()) head_line = line;
        head += c;
      }
    }
    if (!head.empty()) head += ' ';
  }
}

}  // namespace planc
