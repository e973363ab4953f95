#include "worker/device_claim.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/random_id.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/in_use.h"

namespace plumbline::worker {
namespace {

using testing::HasSubstr;

// Tests of one machine may run at the same time.
std::string NewDevice() { return absl::StrCat("GPU-", RandomIds()->NewId()); }

TEST(DeviceClaim, OneHolderAtATime) {
  const std::string device = NewDevice();
  absl::StatusOr<DeviceClaim> first = DeviceClaim::Take({device});
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = DeviceClaim::Take({device}).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetReason(second), kInUseReason);
  EXPECT_THAT(std::string(second.message()), HasSubstr(device));
  EXPECT_TRUE(DeviceClaim::Take({NewDevice()}).ok());
  *first = DeviceClaim();
  EXPECT_TRUE(DeviceClaim::Take({device}).ok());
}

TEST(DeviceClaim, AllOrNone) {
  const std::string free = NewDevice(), taken = NewDevice();
  const DeviceClaim holder = DeviceClaim::Take({taken}).value();
  EXPECT_EQ(GetReason(DeviceClaim::Take({free, taken}).status()), kInUseReason);
  EXPECT_TRUE(DeviceClaim::Take({free}).ok());
}

TEST(DeviceClaim, AnyNameWillDo) {
  const std::string name = NewDevice() + std::string(1000, 'x') + '\0' + "\xff";
  const DeviceClaim holder = DeviceClaim::Take({name}).value();
  EXPECT_FALSE(DeviceClaim::Take({name}).ok());
  EXPECT_TRUE(DeviceClaim::Take({name + "y"}).ok());
}

TEST(DeviceClaim, AKilledHolderLeavesNothingBehind) {
  const std::string device = NewDevice();
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t holder = fork();
  ASSERT_GE(holder, 0);
  if (holder == 0) {
    const absl::StatusOr<DeviceClaim> claim = DeviceClaim::Take({device});
    const char held = claim.ok() ? 'y' : 'n';
    if (write(told[1], &held, 1) != 1) _exit(1);
    while (true) pause();
  }
  char held = 0;
  ASSERT_EQ(read(told[0], &held, 1), 1);
  EXPECT_EQ(held, 'y');
  EXPECT_EQ(GetReason(DeviceClaim::Take({device}).status()), kInUseReason);
  kill(holder, SIGKILL);
  ASSERT_EQ(waitpid(holder, nullptr, 0), holder);
  EXPECT_TRUE(DeviceClaim::Take({device}).ok());
  close(told[0]);
  close(told[1]);
}

}  // namespace
}  // namespace plumbline::worker
