#include "runtime/step/schedule.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace planc {
namespace {

proto::Job JobWith(proto::Decay decay) {
  proto::Job job;
  job.mutable_optimizer()->set_lr(1.0);
  job.mutable_optimizer()->add_betas(0.9);
  job.mutable_optimizer()->add_betas(0.95);
  job.mutable_optimizer()->set_epsilon(1e-8);
  job.mutable_optimizer()->set_weight_decay(0.1);
  job.mutable_lr_schedule()->set_warmup_steps(4);
  job.mutable_lr_schedule()->set_decay(decay);
  job.mutable_lr_schedule()->set_min_ratio(0.2);
  job.mutable_run()->set_steps(12);
  return job;
}

TEST(LearningRate, WarmsUpLinearlyFromZero) {
  const proto::Job job = JobWith(proto::CONSTANT);
  EXPECT_DOUBLE_EQ(LearningRate(job, 0), 0.25);
  EXPECT_DOUBLE_EQ(LearningRate(job, 1), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(job, 2), 0.75);
  EXPECT_DOUBLE_EQ(LearningRate(job, 3), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(job, 4), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(job, 11), 1.0);
}

TEST(LearningRate, DecaysLinearly) {
  const proto::Job job = JobWith(proto::LINEAR);
  EXPECT_DOUBLE_EQ(LearningRate(job, 4), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(job, 8), 0.6);
  EXPECT_DOUBLE_EQ(LearningRate(job, 12), 0.2);
  EXPECT_DOUBLE_EQ(LearningRate(job, 20), 0.2) << "stays at the minimum after run.steps";
}

TEST(LearningRate, DecaysAlongACosine) {
  const proto::Job job = JobWith(proto::COSINE);
  EXPECT_DOUBLE_EQ(LearningRate(job, 4), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(job, 6), 0.2 + 0.8 * (1.0 + 0.70710678118654752440) / 2.0);
  EXPECT_DOUBLE_EQ(LearningRate(job, 8), 0.6);
  EXPECT_DOUBLE_EQ(LearningRate(job, 12), 0.2);
}

TEST(LearningRate, WarmUpAsLongAsTheRunLeavesNoDecay) {
  proto::Job job = JobWith(proto::COSINE);
  job.mutable_lr_schedule()->set_warmup_steps(12);
  EXPECT_DOUBLE_EQ(LearningRate(job, 11), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(job, 12), 1.0);
}

TEST(HyperParameters, ComeFromTheJob) {
  const HyperParameters scalars = HyperParametersOf(JobWith(proto::CONSTANT), 2);
  EXPECT_EQ(scalars.update, 3);
  EXPECT_DOUBLE_EQ(scalars.lr, 0.75);
  EXPECT_DOUBLE_EQ(scalars.beta1, 0.9);
  EXPECT_DOUBLE_EQ(scalars.beta2, 0.95);
  EXPECT_DOUBLE_EQ(scalars.epsilon, 1e-8);
  EXPECT_DOUBLE_EQ(scalars.weight_decay, 0.1);
}

TEST(ScheduleTest, TheDecayMayEndElsewhereThanTheRun) {
  proto::Job job;
  job.mutable_optimizer()->set_lr(2.0);
  job.mutable_lr_schedule()->set_decay(proto::LINEAR);
  job.mutable_lr_schedule()->set_min_ratio(0.5);
  job.mutable_run()->set_steps(20);
  EXPECT_DOUBLE_EQ(LearningRate(job, 10), 1.5) << "until run.steps where there is no key";
  job.mutable_lr_schedule()->set_decay_steps(10);
  EXPECT_DOUBLE_EQ(LearningRate(job, 5), 1.5);
  EXPECT_DOUBLE_EQ(LearningRate(job, 10), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(job, 19), 1.0);
}

}  // namespace
}  // namespace planc
