// Reads tokenizer.json.
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/tokenizer/huggingface_tokenizer.h"
#include "schemas/status.h"

namespace planc {
namespace {

using Json = nlohmann::json;

absl::Status Refuse(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(what, " is not supported"));
}

// A member, or null.
const Json& Member(const Json& object, const char* name) {
  static const Json* const null = new Json();
  if (!object.is_object()) return *null;
  const auto found = object.find(name);
  return found == object.end() ? *null : *found;
}

std::string Text(const Json& object, const char* name) {
  const Json& member = Member(object, name);
  return member.is_string() ? member.get<std::string>() : "";
}

bool Flag(const Json& object, const char* name, bool otherwise = false) {
  const Json& member = Member(object, name);
  return member.is_boolean() ? member.get<bool>() : otherwise;
}

int64_t Number(const Json& object, const char* name, int64_t otherwise) {
  const Json& member = Member(object, name);
  return member.is_number_integer() ? member.get<int64_t>() : otherwise;
}

// The steps of a section: the members of a Sequence, at any depth, or the section itself.
std::vector<Json> StepsOf(const Json& section, const char* list) {
  if (section.is_null()) return {};
  if (Text(section, "type") != "Sequence") return {section};
  std::vector<Json> steps;
  for (const Json& member : Member(section, list)) {
    for (Json& step : StepsOf(member, list)) steps.push_back(std::move(step));
  }
  return steps;
}

absl::StatusOr<BytePairModel> ReadModel(const Json& model) {
  const std::string type = Text(model, "type");
  if (type != "BPE" && !type.empty()) return Refuse(absl::StrCat("model.type ", type));
  if (!Member(model, "dropout").is_null() && Member(model, "dropout") != 0.0) {
    return Refuse("model.dropout");
  }
  for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!Text(model, name).empty()) return Refuse(absl::StrCat("model.", name));
  }
  if (!Member(model, "vocab").is_object() || !Member(model, "merges").is_array()) {
    return absl::InvalidArgumentError("model.vocab and model.merges are missing");
  }
  std::unordered_map<std::string, int32_t> vocab;
  for (const auto& [piece, token] : Member(model, "vocab").items()) {
    if (!token.is_number_integer() || token < 0 || token > INT32_MAX - 1) {
      return absl::InvalidArgumentError(absl::StrCat("model.vocab: `", piece, "` has no number"));
    }
    vocab[piece] = token.get<int32_t>();
  }
  std::vector<std::pair<std::string, std::string>> merges;
  for (const Json& merge : Member(model, "merges")) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t blank = text.find(' ');
    if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("model.merges: entry ", merges.size(), " is not a pair"));
    }
    merges.emplace_back(text.substr(0, blank), text.substr(blank + 1));
  }
  return BytePairModel::Create(std::move(vocab), merges,
                               {Flag(model, "byte_fallback"), Flag(model, "fuse_unk"),
                                Flag(model, "ignore_merges"), Text(model, "unk_token")});
}

absl::StatusOr<std::vector<NormalizeStep>> ReadNormalizers(const Json& section) {
  std::vector<NormalizeStep> steps;
  for (const Json& step : StepsOf(section, "normalizers")) {
    const std::string type = Text(step, "type");
    if (type == "NFC") {
      steps.push_back({NormalizeStep::Kind::kCompose, "", ""});
    } else if (type == "Prepend") {
      steps.push_back({NormalizeStep::Kind::kPrepend, "", Text(step, "prepend")});
    } else if (type == "Replace") {
      const std::string from = Text(Member(step, "pattern"), "String");
      if (from.empty()) return Refuse("normalizer Replace of a regular expression");
      steps.push_back({NormalizeStep::Kind::kReplace, from, Text(step, "content")});
    } else {
      return Refuse(absl::StrCat("normalizer ", type));
    }
  }
  return steps;
}

std::string QuotedRegex(const std::string& text) {
  return absl::StrCat("\\Q", ReplaceAll(text, "\\E", "\\E\\\\E\\Q"), "\\E");
}

absl::StatusOr<std::unique_ptr<PieceSplitter>> ReadSplit(const Json& step) {
  const Json& pattern = Member(step, "pattern");
  const std::string literal = Text(pattern, "String");
  const std::string regex = literal.empty() ? Text(pattern, "Regex") : QuotedRegex(literal);
  if (regex.empty()) return absl::InvalidArgumentError("pre_tokenizer Split has no pattern");
  const std::string behavior = Text(step, "behavior");
  if (behavior == "Isolated") return MakeRegexSplitter(regex, SplitBehavior::kIsolated);
  if (behavior != "Removed") return Refuse(absl::StrCat("pre_tokenizer Split with ", behavior));
  return MakeRegexSplitter(regex,
                           Flag(step, "invert") ? SplitBehavior::kMatches : SplitBehavior::kGaps);
}

// The scheme of a Metaspace; before there were schemes there was a switch.
absl::StatusOr<PrependScheme> ReadScheme(const Json& step) {
  const std::string scheme = Text(step, "prepend_scheme");
  if (scheme == "first") return PrependScheme::kFirst;
  if (scheme == "never") return PrependScheme::kNever;
  if (scheme == "always") return PrependScheme::kAlways;
  if (!scheme.empty()) return Refuse(absl::StrCat("prepend_scheme ", scheme));
  return Flag(step, "add_prefix_space", true) ? PrependScheme::kAlways : PrependScheme::kNever;
}

absl::Status ReadPreTokenizer(const Json& step,
                              std::vector<std::unique_ptr<PieceSplitter>>* splitters) {
  const std::string type = Text(step, "type");
  if (type == "ByteLevel") {
    if (Flag(step, "add_prefix_space", true)) splitters->push_back(MakeSpaceBefore());
    if (Flag(step, "use_regex", true)) {
      PLANC_ASSIGN_OR_RETURN(auto splitter,
                             MakeRegexSplitter(kGpt2Pattern, SplitBehavior::kIsolated));
      splitters->push_back(std::move(splitter));
    }
    splitters->push_back(MakeByteLevel());
    return absl::OkStatus();
  }
  if (type == "Metaspace") {
    PLANC_ASSIGN_OR_RETURN(const PrependScheme scheme, ReadScheme(step));
    splitters->push_back(
        MakeMetaspace(Text(step, "replacement"), scheme, Flag(step, "split", true)));
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<PieceSplitter>> splitter =
      Refuse(absl::StrCat("pre_tokenizer ", type));
  if (type == "Split") splitter = ReadSplit(step);
  if (type == "Digits") {
    const char* const digits = Flag(step, "individual_digits") ? "\\p{N}" : "\\p{N}+";
    splitter = MakeRegexSplitter(digits, SplitBehavior::kIsolated);
  }
  if (!splitter.ok()) return splitter.status();
  splitters->push_back(*std::move(splitter));
  return absl::OkStatus();
}

// The tokens that a TemplateProcessing puts around a text.
absl::Status ReadTemplate(const Json& step, TokenizerParts* parts) {
  std::vector<int32_t>* side = &parts->before;
  for (const Json& entry : Member(step, "single")) {
    if (!Member(entry, "Sequence").is_null()) {
      side = &parts->after;
      continue;
    }
    const std::string name = Text(Member(entry, "SpecialToken"), "id");
    const Json& ids = Member(Member(Member(step, "special_tokens"), name.c_str()), "ids");
    if (!ids.is_array() || ids.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("post_processor: special token `", name, "` has no ids"));
    }
    for (const Json& id : ids) {
      if (!id.is_number_integer()) return Refuse("post_processor with such ids");
      side->push_back(id.get<int32_t>());
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPostProcessors(const Json& section, TokenizerParts* parts) {
  bool has_template = false;
  for (const Json& step : StepsOf(section, "processors")) {
    const std::string type = Text(step, "type");
    if (type == "ByteLevel") continue;  // changes offsets only
    if (type != "TemplateProcessing") return Refuse(absl::StrCat("post_processor ", type));
    if (has_template) return Refuse("a second post_processor TemplateProcessing");
    has_template = true;
    PLANC_RETURN_IF_ERROR(ReadTemplate(step, parts));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::vector<DecodeStep>>> ReadDecoders(const Json& section) {
  if (section.is_null()) return std::optional<std::vector<DecodeStep>>();
  std::vector<DecodeStep> steps;
  for (const Json& step : StepsOf(section, "decoders")) {
    const std::string type = Text(step, "type");
    if (type == "ByteLevel") {
      steps.push_back({DecodeStep::Kind::kByteLevel, "", ""});
    } else if (type == "Replace") {
      const std::string from = Text(Member(step, "pattern"), "String");
      if (from.empty()) return Refuse("decoder Replace of a regular expression");
      steps.push_back({DecodeStep::Kind::kReplace, from, Text(step, "content")});
    } else if (type == "ByteFallback") {
      steps.push_back({DecodeStep::Kind::kByteFallback, "", ""});
    } else if (type == "Fuse") {
      steps.push_back({DecodeStep::Kind::kFuse, "", ""});
    } else if (type == "Strip" && !Text(step, "content").empty()) {
      steps.push_back({DecodeStep::Kind::kStrip, Text(step, "content"), "",
                       Number(step, "start", 0), Number(step, "stop", 0)});
    } else if (type == "Metaspace") {
      PLANC_ASSIGN_OR_RETURN(const PrependScheme scheme, ReadScheme(step));
      steps.push_back({DecodeStep::Kind::kMetaspace, Text(step, "replacement"), "", 0, 0,
                       scheme != PrependScheme::kNever});
    } else {
      return Refuse(absl::StrCat("decoder ", type));
    }
  }
  return std::optional(std::move(steps));
}

absl::Status ReadAddedTokens(const Json& section, TokenizerParts* parts) {
  for (const Json& entry : section) {
    AddedToken token;
    token.text = Text(entry, "content");
    token.token = static_cast<int32_t>(Number(entry, "id", -1));
    token.left_strip = Flag(entry, "lstrip");
    token.right_strip = Flag(entry, "rstrip");
    if (token.text.empty() || token.token < 0) {
      return absl::InvalidArgumentError("added_tokens: an entry has no content or no id");
    }
    if (Flag(entry, "single_word")) {
      return Refuse(absl::StrCat("added token `", token.text, "` with single_word"));
    }
    const bool normalized = Flag(entry, "normalized", !Flag(entry, "special"));
    (normalized ? parts->normalized_tokens : parts->raw_tokens).push_back(std::move(token));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> ParseTokenizerJson(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return absl::InvalidArgumentError("is not whole JSON");
  }
  if (!Member(json, "model").is_object()) {
    return absl::InvalidArgumentError(
        "has no `model`: a tokenizer.json of Hugging Face's library is needed, which "
        "`AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)` writes");
  }
  for (const char* const name : {"truncation", "padding"}) {
    if (!Member(json, name).is_null()) return Refuse(absl::StrCat(name, " of every text"));
  }
  PLANC_ASSIGN_OR_RETURN(BytePairModel model, ReadModel(Member(json, "model")));
  TokenizerParts parts{std::move(model), {}, {}, {}, {}, {}, {}, {}};
  PLANC_RETURN_IF_ERROR(ReadAddedTokens(Member(json, "added_tokens"), &parts));
  PLANC_ASSIGN_OR_RETURN(parts.normalizers, ReadNormalizers(Member(json, "normalizer")));
  for (const Json& step : StepsOf(Member(json, "pre_tokenizer"), "pretokenizers")) {
    PLANC_RETURN_IF_ERROR(ReadPreTokenizer(step, &parts.splitters));
  }
  PLANC_RETURN_IF_ERROR(ReadPostProcessors(Member(json, "post_processor"), &parts));
  PLANC_ASSIGN_OR_RETURN(parts.decoders, ReadDecoders(Member(json, "decoder")));
  PLANC_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                         HuggingFaceTokenizer::Create(std::move(parts)));
  return tokenizer;
}

}  // namespace planc
