// Draws captured from PyTorch: tests/golden/rng.safetensors.
#include "worker/h3/noise_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/safetensors.h"
#include "common/status.h"
#include "worker/h3/noise_cpu.h"
#include "worker/h3/noise_philox.h"

namespace plumbline::h3 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kCudaTolerance = 2e-6;

class CapturedDrawsTest : public ::testing::TestWithParam<int> {
 protected:
  CapturedDrawsTest() : file_(SafetensorsFile::Open("tests/golden/rng.safetensors")) {}

  std::vector<float> Captured(const std::string& name) {
    const absl::StatusOr<absl::Span<const uint8_t>> bytes = file_->Bytes(name);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    std::vector<float> values(bytes.ok() ? bytes->size() / sizeof(float) : 0);
    if (!values.empty()) std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
  }

  static std::vector<float> Draw(NormalGenerator* generator, size_t size) {
    std::vector<float> values(size);
    EXPECT_TRUE(generator->Draw(absl::MakeSpan(values)).ok());
    return values;
  }

  void ExpectSameBits(const std::string& name, const std::vector<float>& values) {
    const std::vector<float> captured = Captured(name);
    ASSERT_EQ(values.size(), captured.size()) << name;
    int differ = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::memcmp(&values[i], &captured[i], sizeof(float)) == 0) continue;
      if (differ++ == 0) {
        ADD_FAILURE() << name << ": value " << i << " is " << std::hexfloat << values[i]
                      << ", captured " << captured[i];
      }
    }
    EXPECT_EQ(differ, 0) << name << ": of " << values.size();
  }

  void ExpectClose(const std::string& name, absl::Span<const float> values) {
    const std::vector<float> captured = Captured(name);
    ASSERT_EQ(values.size(), captured.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], captured[i], kCudaTolerance) << name << ": value " << i;
    }
  }

  std::string Name(absl::string_view device, absl::string_view draw) const {
    return absl::StrCat(device, ".", GetParam(), ".", draw);
  }

  absl::StatusOr<SafetensorsFile> file_;
};

constexpr int kSizes[] = {1, 5, 15, 16, 17, 1000, 4099};
constexpr char const* kSequence[] = {"seq_a", "seq_b", "seq_c"};

TEST_P(CapturedDrawsTest, CpuBitForBit) {
  for (const int size : kSizes) {
    TorchCpuGenerator generator(GetParam());
    ExpectSameBits(Name("cpu", absl::StrCat(size)), Draw(&generator, size));
  }
  TorchCpuGenerator generator(GetParam());
  for (const char* draw : kSequence) {
    const std::string name = Name("cpu", draw);
    ExpectSameBits(name, Draw(&generator, Captured(name).size()));
  }
}

TEST_P(CapturedDrawsTest, CudaWithinTolerance) {
  for (const int size : kSizes) {
    TorchCudaGenerator generator(GetParam(), 132);
    ExpectClose(Name("cuda", absl::StrCat(size)), Draw(&generator, size));
  }
  TorchCudaGenerator generator(GetParam(), 132);
  for (const char* draw : kSequence) {
    const std::string name = Name("cuda", draw);
    ExpectClose(name, Draw(&generator, Captured(name).size()));
  }
}

// More values than the GPU has threads for in one iteration.
TEST_P(CapturedDrawsTest, LargeCudaDrawAndTheOneAfter) {
  TorchCudaGenerator generator(GetParam(), 132);
  const std::vector<float> big = Draw(&generator, 3000000);
  const absl::Span<const float> values(big);
  ExpectClose(Name("cuda", "big_head"), values.first(64));
  ExpectClose(Name("cuda", "big_mid"), values.subspan(1500000, 64));
  ExpectClose(Name("cuda", "big_tail"), values.last(64));
  ExpectClose(Name("cuda", "after_big"), Draw(&generator, 8));
}

INSTANTIATE_TEST_SUITE_P(Seeds, CapturedDrawsTest, ::testing::Values(42, 43, 44));

TEST(TorchCpuGeneratorTest, UsesTheLowerHalfOfTheSeed) {
  float a[20], b[20];
  EXPECT_TRUE(TorchCpuGenerator(7).Draw(absl::MakeSpan(a)).ok());
  EXPECT_TRUE(TorchCpuGenerator((uint64_t{5} << 32) + 7).Draw(absl::MakeSpan(b)).ok());
  EXPECT_EQ(std::memcmp(a, b, sizeof(a)), 0);
}

// The second value of a pair waits for the next small draw, past large ones.
TEST(TorchCpuGeneratorTest, KeepsTheSecondValueOfAPair) {
  float pair[2], first[1], large[16], second[1];
  EXPECT_TRUE(TorchCpuGenerator(7).Draw(absl::MakeSpan(pair)).ok());
  TorchCpuGenerator generator(7);
  EXPECT_TRUE(generator.Draw(absl::MakeSpan(first)).ok());
  EXPECT_TRUE(generator.Draw(absl::MakeSpan(large)).ok());
  EXPECT_TRUE(generator.Draw(absl::MakeSpan(second)).ok());
  EXPECT_EQ(first[0], pair[0]);
  EXPECT_EQ(second[0], pair[1]);
}

// The known answers that come with the authors' implementation (Random123, kat_vectors).
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(
      Philox4x32({0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}, {0xffffffffu, 0xffffffffu}),
      ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(
      Philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
      ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(TorchCudaGeneratorTest, OrderDependsOnTheMultiprocessorsOfALargeDraw) {
  std::vector<float> small(5000), large(5000);
  EXPECT_TRUE(TorchCudaGenerator(1, 1).Draw(absl::MakeSpan(small)).ok());
  EXPECT_TRUE(TorchCudaGenerator(1, 132).Draw(absl::MakeSpan(large)).ok());
  EXPECT_NE(small, large);
  // 2048 threads and 5120 of them begin alike.
  EXPECT_EQ(small[2047], large[2047]);
  EXPECT_NE(small[2048], large[2048]);
}

TEST(TorchCudaGeneratorTest, AnEmptyDrawUsesNothing) {
  float a[3], b[3];
  TorchCudaGenerator generator(1, 132);
  EXPECT_TRUE(generator.Draw({}).ok());
  EXPECT_TRUE(generator.Draw(absl::MakeSpan(a)).ok());
  EXPECT_TRUE(TorchCudaGenerator(1, 132).Draw(absl::MakeSpan(b)).ok());
  EXPECT_EQ(std::memcmp(a, b, sizeof(a)), 0);
}

TEST(RngTest, Parses) {
  EXPECT_EQ(ParseRng("torch-cpu", "f")->kind, Rng::Kind::kTorchCpu);
  EXPECT_EQ(ParseRng("torch-cuda:78", "f")->multiprocessors, 78);
  for (const char* text : {"torch-cpu", "torch-cuda:1", "torch-cuda:4096"}) {
    EXPECT_EQ(FormatRng(*ParseRng(text, "f")), text);
  }
  EXPECT_EQ(FormatRng(Rng()), "torch-cuda:132");
}

TEST(RngTest, RefusesOthers) {
  for (const char* text : {"", "torch", "torch-cuda", "torch-cuda:", "torch-cuda:0",
                           "torch-cuda:-1", "torch-cuda:4097", "torch-cuda:1x", "numpy"}) {
    const absl::Status status = ParseRng(text, "contract: rng").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("contract: rng: unknown generator \"" + std::string(text) +
                          "\"; accepted: torch-cpu, or torch-cuda:MULTIPROCESSORS"));
  }
}

}  // namespace
}  // namespace plumbline::h3
