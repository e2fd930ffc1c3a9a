#include "schemas/plan_io.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "schemas/plan.h"

namespace planc {
namespace {

// Plans with every field filled from a seeded generator: what any one field holds is irrelevant to
// the file, but none may be lost.
class RandomPlan {
 public:
  explicit RandomPlan(uint64_t seed) : random_(seed) {}

  Plan Make() {
    Plan plan;
    plan.job.set_job("job");
    plan.job.mutable_optimizer()->add_betas(0.9);
    plan.mesh.size = {Up(3) + 1, Up(3) + 1, Up(3) + 1, 1, Up(3) + 1};
    plan.ranks_per_node = Up(9);
    plan.microbatches = Up(9);
    plan.parameters = Any();
    plan.scalars = {Index(), Index(), Index()};
    Fill(&plan.groups, [&](auto* out) {
      *out = {Name(), static_cast<AxisSet>(Up(31)), Up(1) == 1};
    });
    Fill(&plan.pools, [&](auto* out) {
      *out = {Name(), static_cast<MemoryKind>(Up(kMemoryKindCount - 1)), Any()};
    });
    Fill(&plan.buffers, [&](auto* out) {
      *out = {Name(), Index(), Any(), Any(), static_cast<DType>(Up(4)), Numbers<int64_t>(), {}};
      for (AxisLayout& axis : out->layout.axes) {
        axis = {static_cast<AxisLayout::Kind>(Up(3)), static_cast<int8_t>(Up(3) - 1)};
      }
    });
    Fill(&plan.events, [&](auto* out) {
      *out = {Name(), Index(), static_cast<Stream>(Up(kStreamCount - 1))};
    });
    Fill(&plan.blocks, [&](auto* out) { *out = MakeBlock(); });
    Fill(&plan.units, [&](auto* out) {
      *out = {Name(),  Up(1) == 1, Up(1) == 1, Any(),   Any(),
              Index(), Index(),    Index(),    Index(), Any()};
    });
    Fill(&plan.params, [&](auto* out) {
      *out = {Name(),  Numbers<int64_t>(), Index(), Any(),     Numbers<int64_t>(),
              Index(), Up(1) == 1,         Real(),  Up(1) == 1};
    });
    Fill(&plan.classes, [&](auto* out) { *out = MakeClass(); });
    return plan;
  }

 private:
  int64_t Up(int64_t most) { return static_cast<int64_t>(random_() % (most + 1)); }
  int64_t Any() { return static_cast<int64_t>(random_() >> Up(63)); }
  int Index() { return static_cast<int>(Up(100)) - 1; }
  double Real() { return static_cast<double>(Any()) / 1000; }
  std::string Name() { return absl::StrCat("name", Up(1000)); }

  template <typename Row, typename Make>
  void Fill(std::vector<Row>* rows, Make make) {
    rows->resize(Up(4));
    for (Row& row : *rows) make(&row);
  }
  template <typename Number>
  std::vector<Number> Numbers() {
    std::vector<Number> numbers;
    Fill(&numbers, [&](Number* out) { *out = static_cast<Number>(Any()); });
    return numbers;
  }

  Block MakeBlock() {
    Block block{Name(), Numbers<int>(), {}};
    Fill(&block.instructions, [&](Instruction* out) {
      out->opcode = static_cast<Opcode>(Up(kOpcodeCount - 1));
      Fill(&out->operands, [&](auto* o) { *o = {Index(), Index(), Any(), Any(), Any()}; });
      out->integers = Numbers<int64_t>();
      Fill(&out->reals, [&](double* real) { *real = Real(); });
      out->stream = static_cast<Stream>(Up(kStreamCount - 1));
      Fill(&out->waits, [&](auto* o) { *o = {Index(), Index()}; });
      Fill(&out->records, [&](auto* o) { *o = {Index(), Index()}; });
      out->group = Index();
      out->label = static_cast<Label>(Up(8));
      out->cost = {Real(), Any(), Any(), Any()};
    });
    return block;
  }

  RankClass MakeClass() {
    RankClass out{
        Up(9), Numbers<int>(), Up(1) == 1, Up(1) == 1, Numbers<int32_t>(), Numbers<int64_t>(), {},
        {}};
    for (int64_t& bytes : out.arena_bytes) bytes = Any();
    for (Program& program : out.programs) {
      Fill(&program.steps, [&](Repeat* repeat) {
        repeat->count = 1 + Up(5);
        repeat->microbatch_step = Index();
        Fill(&repeat->calls, [&](Call* call) {
          *call = {Index(), Index(), Index(), Numbers<int32_t>()};
        });
      });
    }
    return out;
  }

  std::mt19937_64 random_;
};

TEST(PlanIo, RoundTripLosesNothing) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Plan plan = RandomPlan(seed).Make();
    const absl::StatusOr<std::string> bytes = SerializePlan(plan);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const absl::StatusOr<Plan> again = ParsePlan(*bytes);
    ASSERT_TRUE(again.ok()) << again.status();
    // The text and the image are made by separate code, field by field.
    EXPECT_EQ(PlanText(*again), PlanText(plan));
    EXPECT_EQ(PlanToProto(*again).SerializeAsString(), PlanToProto(plan).SerializeAsString());
    EXPECT_EQ(*SerializePlan(*again), *bytes);
  }
}

TEST(PlanIo, SmallestPlanRoundTrips) {
  const absl::StatusOr<std::string> bytes = SerializePlan(Plan());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(LooksLikePlan(*bytes));
  EXPECT_EQ(bytes->substr(0, 13), "planc-plan 2 ");
  EXPECT_EQ(bytes->substr(13, 32), *PlanHash(Plan()));
  EXPECT_TRUE(ParsePlan(*bytes).ok());
}

// Every field of the image must come from a field of Plan: a field that the writer forgets would
// pass the round trip unseen.
TEST(PlanIo, WritesEveryField) {
  std::map<std::string, int> seen;
  const std::function<void(const google::protobuf::Message&)> visit =
      [&](const google::protobuf::Message& message) {
        std::vector<const google::protobuf::FieldDescriptor*> fields;
        message.GetReflection()->ListFields(message, &fields);
        for (const google::protobuf::FieldDescriptor* field : fields) {
          ++seen[field->full_name()];
          if (field->message_type() == nullptr || field->name() == "job") continue;
          if (!field->is_repeated()) visit(message.GetReflection()->GetMessage(message, field));
          for (int i = 0;
               field->is_repeated() && i < message.GetReflection()->FieldSize(message, field);
               ++i) {
            visit(message.GetReflection()->GetRepeatedMessage(message, field, i));
          }
        }
      };
  for (uint64_t seed = 0; seed < 50; ++seed) visit(PlanToProto(RandomPlan(seed).Make()));
  const google::protobuf::Descriptor* plan = proto::Plan::descriptor();
  for (int m = -1; m < plan->nested_type_count(); ++m) {
    const google::protobuf::Descriptor* message = m < 0 ? plan : plan->nested_type(m);
    for (int f = 0; f < message->field_count(); ++f) {
      EXPECT_GT(seen[message->field(f)->full_name()], 0) << message->field(f)->full_name();
    }
  }
}

TEST(PlanIo, DetectsEveryChangedByte) {
  const std::string bytes = *SerializePlan(RandomPlan(7).Make());
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int flip : {1, 0x20, 0x80}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      EXPECT_FALSE(ParsePlan(changed).ok()) << "byte " << i << " flipped with " << flip;
    }
  }
}

TEST(PlanIo, DetectsEveryCutAndAppendedBytes) {
  const std::string bytes = *SerializePlan(RandomPlan(7).Make());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(ParsePlan(bytes.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(ParsePlan(bytes + '\0').ok());
}

TEST(PlanIo, NamesTheVersionItCannotRead) {
  std::string bytes = *SerializePlan(Plan());
  bytes.replace(11, 1, "7");
  const absl::Status status = ParsePlan(bytes).status();
  EXPECT_NE(status.message().find("format version 7; this planc reads version 2"),
            absl::string_view::npos)
      << status;
}

// The checksum is right, the content is not.
std::string Seal(const proto::Plan& image) { return SealPlanBody(image.SerializeAsString()); }

TEST(PlanIo, RefusesContentThatNoPlanHas) {
  const proto::Plan good = PlanToProto(RandomPlan(12).Make());
  ASSERT_TRUE(ParsePlan(Seal(good)).ok()) << ParsePlan(Seal(good)).status();
  const auto refused = [&](const char* what, const std::function<void(proto::Plan*)>& change) {
    proto::Plan image = good;
    change(&image);
    EXPECT_FALSE(ParsePlan(Seal(image)).ok()) << what;
  };
  refused("mesh length", [](proto::Plan* p) { p->add_mesh(1); });
  refused("mesh zero", [](proto::Plan* p) { p->set_mesh(0, 0); });
  refused("mesh overflow", [](proto::Plan* p) {
    for (int i = 0; i < kAxisCount; ++i) p->set_mesh(i, int64_t{1} << 62);
  });
  refused("memory kind", [](proto::Plan* p) { p->add_pools()->set_kind(99); });
  refused("dtype", [](proto::Plan* p) { p->add_buffers()->set_dtype(99); });
  refused("layout", [](proto::Plan* p) { p->add_buffers()->add_layout(1); });
  refused("stream", [](proto::Plan* p) { p->add_events()->set_stream(99); });
  refused("opcode", [](proto::Plan* p) { p->add_blocks()->add_instructions()->set_opcode(999); });
  refused("name with a terminal control",
          [](proto::Plan* p) { p->add_pools()->set_name("\x1b[2J"); });
  refused("name that is not ASCII", [](proto::Plan* p) { p->add_blocks()->set_name("\xff"); });
  refused("name without end",
          [](proto::Plan* p) { p->add_units()->set_name(std::string(1000, 'x')); });
  refused("half a wait", [](proto::Plan* p) { p->add_blocks()->add_instructions()->add_waits(1); });
  refused("no programs", [](proto::Plan* p) { p->add_classes(); });
  refused("missing default fields", [](proto::Plan* p) { p->clear_loss(); });
  refused("unknown field",
          [](proto::Plan* p) { p->GetReflection()->MutableUnknownFields(p)->AddVarint(1000, 1); });
  refused("unknown field of the job", [](proto::Plan* p) {
    p->mutable_job()->GetReflection()->MutableUnknownFields(p->mutable_job())->AddVarint(1000, 1);
  });
}

TEST(PlanIo, BoundsTheExpandedCalls) {
  Plan plan;
  RankClass& rank_class = plan.classes.emplace_back();
  rank_class.programs[0].steps = {{int64_t{1} << 62, 0, {Call()}}};
  EXPECT_FALSE(SerializePlan(plan).ok());
  rank_class.programs[0].steps = {{kMaximumExpandedCalls, 0, {Call()}}};
  EXPECT_TRUE(SerializePlan(plan).ok());
  rank_class.programs[0].steps.push_back({1, 0, {}});
  EXPECT_FALSE(SerializePlan(plan).ok());
}

}  // namespace
}  // namespace planc
