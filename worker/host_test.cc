#include "worker/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "kernels/builtin.h"

namespace plumbline::worker {
namespace {

std::string FieldOf(const absl::Status& status) {
  const auto violations = GetFieldViolations(status);
  return violations.size() == 1 ? violations[0].field : "";
}

TEST(HostTest, DefaultsAreTheMachines) {
  const auto device = MakeWorkerDevice({});
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_GE(device->threads, 1);
  EXPECT_GT(device->device->MemoryBytes(), int64_t{64} << 20);
}

TEST(HostTest, WhatCannotBeNamesTheFlag) {
  EXPECT_EQ(FieldOf(MakeWorkerDevice({"tpu"}).status()), "device");
  EXPECT_EQ(FieldOf(MakeWorkerDevice({"cpu", -1}).status()), "threads");
  EXPECT_EQ(FieldOf(MakeWorkerDevice({"cpu", 1, -1}).status()), "memory");
}

TEST(HostTest, WorkerSaysWhatDecidesItsNumbers) {
  const auto device = MakeWorkerDevice({"cpu", 3, 1'000'000'000});
  ASSERT_TRUE(device.ok()) << device.status();
  KernelIdentity identity;
  identity.sha256 = "abc";
  const v1::WorkerCapabilities capabilities =
      DescribeWorker(*device, MakeBuiltinRegistry(), identity);
  EXPECT_EQ(capabilities.device().kind(), v1::DEVICE_KIND_CPU);
  EXPECT_EQ(capabilities.device().threads(), 3);
  EXPECT_EQ(capabilities.device().memory_bytes(), 1'000'000'000);
  EXPECT_FALSE(capabilities.device().product().empty());
  EXPECT_FALSE(capabilities.device().device_class().empty());
  EXPECT_EQ(capabilities.kernel_identity().sha256(), "abc");
  EXPECT_THAT(capabilities.libraries().at("openblas"),
              testing::MatchesRegex("0\\.[0-9.]+ [A-Za-z]+, 1 thread"));
  EXPECT_THAT(capabilities.implementations(),
              testing::IsSupersetOf({"golden", "provider/default", "candidate"}));
}

TEST(HostTest, ProcessUsesMemory) { EXPECT_GT(ProcessMemoryBytes(), 100'000); }

}  // namespace
}  // namespace plumbline::worker
