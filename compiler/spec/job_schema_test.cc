#include "compiler/spec/job_schema.h"

#include <memory>
#include <string>

#include "compiler/spec/parse_job.h"
#include "compiler/spec/parse_value.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"

namespace planc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;

std::unique_ptr<Message> SectionOf(const JobKey& key) {
  return std::unique_ptr<Message>(
      MessageFactory::generated_factory()->GetPrototype(key.field->containing_type())->New());
}

TEST(JobSchemaTest, EveryKeyIsDocumented) {
  for (const JobKey& key : AllJobKeys()) {
    EXPECT_FALSE(key.key->doc().empty()) << key.path;
    EXPECT_EQ(key.key->doc().back(), '.') << key.path;
    // A value is given, a default, or derived: exactly one of the last two, or neither.
    EXPECT_FALSE(key.key->has_default_() && key.key->has_derived()) << key.path;
    EXPECT_EQ(FindJobKey(key.path), &key);
  }
  for (const JobSection& section : AllJobSections()) {
    EXPECT_FALSE(section.doc.empty()) << section.path;
  }
}

TEST(JobSchemaTest, DefaultsAreValidValues) {
  for (const JobKey& key : AllJobKeys()) {
    if (!key.key->has_default_()) continue;
    EXPECT_TRUE(SetFromDefault(key, *SectionOf(key))) << key.path;
  }
}

TEST(JobSchemaTest, ExamplesAreValidValues) {
  for (const JobKey& key : AllJobKeys()) {
    if (!key.key->has_example()) continue;
    proto::Key with_default = *key.key;
    with_default.set_default_(key.key->example());
    JobKey as_default = key;
    as_default.key = &with_default;
    EXPECT_TRUE(SetFromDefault(as_default, *SectionOf(key))) << key.path;
  }
}

TEST(JobSchemaTest, EveryEnumValueButTheFirstHasASpelling) {
  for (const JobKey& key : AllJobKeys()) {
    if (key.field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM) continue;
    const auto& type = *key.field->enum_type();
    EXPECT_EQ(static_cast<int>(EnumTexts(type).size()), type.value_count() - 1) << key.path;
    EXPECT_EQ(FindEnumValue(type, ""), nullptr);
    for (const std::string& text : EnumTexts(type)) {
      ASSERT_NE(FindEnumValue(type, text), nullptr) << text;
      EXPECT_EQ(EnumText(*FindEnumValue(type, text)), text);
    }
  }
}

TEST(JobSchemaTest, RequiredKeysHaveExamples) {
  for (const JobKey& key : AllJobKeys()) {
    if (key.key->has_default_() || key.key->has_derived()) continue;
    EXPECT_NE(ExampleOf(key), "") << key.path;
  }
}

TEST(JobSchemaTest, Paths) {
  EXPECT_EQ(JoinPath("", "job"), "job");
  EXPECT_EQ(JoinPath("mesh", "tp"), "mesh.tp");
  EXPECT_EQ(FindJobKey("mesh"), nullptr);
  ASSERT_NE(FindJobSection("parallelism.pipeline"), nullptr);
  EXPECT_EQ(FindJobSection("parallelism.pipelines"), nullptr);
}

}  // namespace
}  // namespace planc
