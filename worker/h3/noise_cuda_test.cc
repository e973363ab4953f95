// Noise drawn on a GPU against draws captured from PyTorch on an H200:
// tests/golden/rng.safetensors.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/safetensors.h"
#include "kernels/cuda/cuda_case.h"
#include "worker/h3/noise_generator.h"

namespace plumbline::h3 {
namespace {

class NoiseCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    PLUMBLINE_SKIP_WITHOUT_GPU();
    ASSERT_TRUE(file_.ok()) << file_.status();
  }

  static std::unique_ptr<NormalGenerator> Generator(uint64_t seed) {
    return MakeNormalGenerator(Rng{}, seed, CudaDeviceForTest());
  }

  void ExpectNextDrawIs(const std::string& name, NormalGenerator* generator) {
    const absl::StatusOr<absl::Span<const uint8_t>> captured = file_->Bytes(name);
    ASSERT_TRUE(captured.ok()) << captured.status();
    std::vector<float> drawn(captured->size() / sizeof(float));
    ASSERT_TRUE(generator->Draw(absl::MakeSpan(drawn)).ok());
    EXPECT_EQ(std::memcmp(drawn.data(), captured->data(), captured->size()), 0) << name;
  }

  const absl::StatusOr<SafetensorsFile> file_ =
      SafetensorsFile::Open("tests/golden/rng.safetensors");
};

TEST_F(NoiseCuda, HasPyTorchsBits) {
  int draws = 0;
  for (const TensorInfo& tensor : file_->tensors()) {
    // "cuda.SEED.SIZE": the first draw of its generator.
    const std::vector<std::string> parts = absl::StrSplit(tensor.name, '.');
    uint64_t seed, size;
    if (parts.size() != 3 || parts[0] != "cuda" || !absl::SimpleAtoi(parts[1], &seed) ||
        !absl::SimpleAtoi(parts[2], &size)) {
      continue;
    }
    ExpectNextDrawIs(tensor.name, Generator(seed).get());
    ++draws;
  }
  EXPECT_GT(draws, 0);
}

TEST_F(NoiseCuda, HasPyTorchsBitsInASequenceOfDraws) {
  int sequences = 0;
  for (const TensorInfo& tensor : file_->tensors()) {
    const std::vector<std::string> parts = absl::StrSplit(tensor.name, '.');
    uint64_t seed;
    if (parts.size() != 3 || parts[0] != "cuda" || parts[2] != "seq_a" ||
        !absl::SimpleAtoi(parts[1], &seed)) {
      continue;
    }
    const std::unique_ptr<NormalGenerator> generator = Generator(seed);
    for (const char* draw : {"seq_a", "seq_b", "seq_c"}) {
      ExpectNextDrawIs(absl::StrCat("cuda.", seed, ".", draw), generator.get());
    }
    ++sequences;
  }
  EXPECT_GT(sequences, 0);
}

TEST_F(NoiseCuda, HasPyTorchsBitsInManyValuesAndBehindThem) {
  constexpr int64_t kSize = 3000000;
  for (const uint64_t seed : {42, 43, 44}) {
    const std::unique_ptr<NormalGenerator> generator = Generator(seed);
    std::vector<float> drawn(kSize);
    ASSERT_TRUE(generator->Draw(absl::MakeSpan(drawn)).ok());
    for (const auto& [part, begin] :
         {std::pair("big_head", int64_t{0}), std::pair("big_mid", kSize / 2),
          std::pair("big_tail", kSize - 64)}) {
      const std::string name = absl::StrCat("cuda.", seed, ".", part);
      const absl::StatusOr<absl::Span<const uint8_t>> captured = file_->Bytes(name);
      ASSERT_TRUE(captured.ok()) << captured.status();
      EXPECT_EQ(std::memcmp(drawn.data() + begin, captured->data(), captured->size()), 0) << name;
    }
    ExpectNextDrawIs(absl::StrCat("cuda.", seed, ".after_big"), generator.get());
  }
}

}  // namespace
}  // namespace plumbline::h3
