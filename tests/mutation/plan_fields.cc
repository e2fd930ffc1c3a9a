#include "tests/mutation/plan_fields.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"

namespace planc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string Joined(const std::string& path, const FieldDescriptor& field) {
  return path.empty() ? field.name() : absl::StrCat(path, ".", field.name());
}

void AddFields(const Descriptor& message, const PlanField& within, std::vector<PlanField>* fields) {
  for (int i = 0; i < message.field_count(); ++i) {
    PlanField field = within;
    field.path = Joined(within.path, *message.field(i));
    field.steps.push_back(message.field(i));
    field.in_job = within.in_job || message.field(i)->message_type() == proto::Job::descriptor();
    fields->push_back(field);
    if (message.field(i)->message_type() != nullptr) {
      AddFields(*message.field(i)->message_type(), field, fields);
    }
  }
}

// The messages that have the field.
std::vector<Message*> Holders(const PlanField& field, proto::Plan& image) {
  std::vector<Message*> holders = {&image};
  for (size_t s = 0; s + 1 < field.steps.size(); ++s) {
    const FieldDescriptor* const step = field.steps[s];
    std::vector<Message*> next;
    for (Message* const holder : holders) {
      const Reflection& reflection = *holder->GetReflection();
      if (!step->is_repeated()) {
        next.push_back(reflection.MutableMessage(holder, step));
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(*holder, step); ++i) {
        next.push_back(reflection.MutableRepeatedMessage(holder, step, i));
      }
    }
    holders = std::move(next);
  }
  return holders;
}

bool IsSet(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

// Reads and writes one value of a field, entry `index` of a repeated one.
class Value {
 public:
  Value(Message* message, const FieldDescriptor* field, int index)
      : message_(message), field_(field), index_(index), reflection_(*message->GetReflection()) {}

#define PLANC_VALUE(Type, Name)                                                             \
  Type Name() const {                                                                       \
    return field_->is_repeated() ? reflection_.GetRepeated##Name(*message_, field_, index_) \
                                 : reflection_.Get##Name(*message_, field_);                \
  }                                                                                         \
  void Set##Name(const Type& value) {                                                       \
    field_->is_repeated() ? reflection_.SetRepeated##Name(message_, field_, index_, value)  \
                          : reflection_.Set##Name(message_, field_, value);                 \
  }
  PLANC_VALUE(int32_t, Int32)
  PLANC_VALUE(int64_t, Int64)
  PLANC_VALUE(uint32_t, UInt32)
  PLANC_VALUE(double, Double)
  PLANC_VALUE(bool, Bool)
  PLANC_VALUE(std::string, String)
  PLANC_VALUE(int, EnumValue)
#undef PLANC_VALUE

  void Change(Choice& choice) {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return SetInt32(static_cast<int32_t>(Other(Int32(), choice)));
      case FieldDescriptor::CPPTYPE_INT64:
        return SetInt64(Other(Int64(), choice));
      case FieldDescriptor::CPPTYPE_UINT32:
        return SetUInt32(static_cast<uint32_t>(Other(UInt32(), choice)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return SetDouble(OtherReal(Double(), choice));
      case FieldDescriptor::CPPTYPE_BOOL:
        return SetBool(!Bool());
      case FieldDescriptor::CPPTYPE_ENUM: {
        const auto& type = *field_->enum_type();
        return SetEnumValue(
            type.value(static_cast<int>(choice.Below(type.value_count())))->number());
      }
      default:
        return SetString(absl::StrCat(String(), choice.Below(3) == 0 ? "\n" : "x"));
    }
  }

 private:
  static int64_t Other(int64_t value, Choice& choice) {
    const int64_t others[] = {value + 1, value - 1, value * 2, value + 64, 0, -1, int64_t{1} << 40};
    return others[choice.Below(7)];
  }
  static double OtherReal(double value, Choice& choice) {
    const double others[] = {value * 1.01 + 1e-3, value * 2, 0, -value - 1,
                             std::numeric_limits<double>::quiet_NaN()};
    return others[choice.Below(5)];
  }

  Message* const message_;
  const FieldDescriptor* const field_;
  const int index_;
  const Reflection& reflection_;
};

void AddEntry(Message* message, const FieldDescriptor* field, Choice& choice) {
  const Reflection& reflection = *message->GetReflection();
  const int before = reflection.FieldSize(*message, field);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      Message* const added = reflection.AddMessage(message, field);
      if (before == 0) return;
      const int like = static_cast<int>(choice.Below(before));
      added->CopyFrom(reflection.GetRepeatedMessage(*message, field, like));
      return;
    }
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.AddInt32(message, field, static_cast<int32_t>(choice.Below(3)));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.AddInt64(message, field, choice.Below(3));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.AddUInt32(message, field, static_cast<uint32_t>(choice.Below(3)));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.AddDouble(message, field, 0.5);
    default:
      return reflection.AddString(message, field, "x");
  }
}

void ChangeList(Message* message, const FieldDescriptor* field, Choice& choice) {
  const Reflection& reflection = *message->GetReflection();
  const int size = reflection.FieldSize(*message, field);
  const int64_t what = choice.Below(4);
  if (size == 0 || what == 0) {
    AddEntry(message, field, choice);
  } else if (what == 1) {
    reflection.SwapElements(message, field, static_cast<int>(choice.Below(size)), size - 1);
    reflection.RemoveLast(message, field);
  } else if (what == 2 || field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    reflection.SwapElements(message, field, static_cast<int>(choice.Below(size)),
                            static_cast<int>(choice.Below(size)));
  } else {
    Value(message, field, static_cast<int>(choice.Below(size))).Change(choice);
  }
}

// Collects the paths of what a comparison finds.
class Differences : public google::protobuf::util::MessageDifferencer::Reporter {
 public:
  using Path = std::vector<google::protobuf::util::MessageDifferencer::SpecificField>;
  void ReportAdded(const Message&, const Message&, const Path& path) override { Add(path); }
  void ReportDeleted(const Message&, const Message&, const Path& path) override { Add(path); }
  void ReportModified(const Message&, const Message&, const Path& path) override {
    if (path.back().field->message_type() == nullptr) Add(path);
  }
  std::set<std::string> paths;

 private:
  void Add(const Path& path) {
    std::string joined;
    for (const auto& step : path) joined = Joined(joined, *step.field);
    paths.insert(joined);
  }
};

}  // namespace

const std::vector<PlanField>& AllPlanFields() {
  static const std::vector<PlanField>* const fields = [] {
    auto* const all = new std::vector<PlanField>;
    AddFields(*proto::Plan::descriptor(), {}, all);
    return all;
  }();
  return *fields;
}

Mutated ChangeField(const PlanField& field, proto::Plan& image, Choice& choice) {
  const FieldDescriptor* const last = field.steps.back();
  std::vector<Message*> holders = Holders(field, image);
  if (choice.Below(4) != 0) {  // mostly where there is something to change
    std::vector<Message*> set;
    for (Message* const holder : holders) {
      if (IsSet(*holder, *last)) set.push_back(holder);
    }
    if (!set.empty()) holders = std::move(set);
  }
  if (holders.empty()) return {};
  const int64_t chosen = choice.Below(static_cast<int64_t>(holders.size()));
  Message* const holder = holders[chosen];
  const std::string before = holder->SerializeAsString();
  const bool message = last->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (last->is_repeated()) {
    ChangeList(holder, last, choice);
  } else if (message || (IsSet(*holder, *last) && choice.Below(6) == 0)) {
    if (message && !IsSet(*holder, *last)) {
      holder->GetReflection()->MutableMessage(holder, last);
    } else {
      holder->GetReflection()->ClearField(holder, last);
    }
  } else {
    Value(holder, last, 0).Change(choice);
  }
  if (holder->SerializeAsString() == before) return {};
  std::string text = absl::StrCat("field ", field.path, ", message ", chosen);
  if (!message) absl::StrAppend(&text, ": ", holder->ShortDebugString().substr(0, 300));
  return {true, text};
}

std::set<std::string> FieldsThatDiffer(const proto::Plan& a, const proto::Plan& b) {
  Differences differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesTo(&differences);
  differencer.Compare(a, b);
  return differences.paths;
}

}  // namespace planc
