// Protocol Buffers: messages, and custom options read back through the descriptor.
#include <string>

#include <gtest/gtest.h>

#include "third_party/smoke.pb.h"

TEST(SmokeTest, Protobuf) {
  planc::smoke::Greeting greeting;
  greeting.set_text("hello");
  std::string bytes;
  ASSERT_TRUE(greeting.SerializeToString(&bytes));
  planc::smoke::Greeting copy;
  ASSERT_TRUE(copy.ParseFromString(bytes));
  EXPECT_EQ(copy.text(), "hello");
  const auto* field = planc::smoke::Greeting::descriptor()->FindFieldByName("text");
  ASSERT_NE(field, nullptr);
  EXPECT_EQ(field->options().GetExtension(planc::smoke::doc), "what is said");
}
