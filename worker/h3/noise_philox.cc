#include "worker/h3/noise_philox.h"

#include <algorithm>
#include <cmath>

#include "common/status.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::h3 {
namespace {

constexpr uint64_t kWords = TorchNormalDraw::kWords;

// Behind a draw of `size` values.
void Advance(uint64_t size, TorchNormalDraw* draw) {
  draw->offset += draw->Iterations(size) * kWords;
}

struct Pair {
  float first;
  float second;
};

// cuRAND's _curand_box_muller.
Pair BoxMuller(uint32_t x, uint32_t y) {
  constexpr float kTwoPi = 6.2831855f;
  const float u = std::fma(static_cast<float>(x), 0x1p-32f, 0x1p-33f);  // (0, 1]
  const float v = std::fma(static_cast<float>(y), 0x1p-32f * kTwoPi, 0x1p-33f * kTwoPi);
  const float s = std::sqrt(-2.0f * Log(u));
  return {s * Sin(v), s * Cos(v)};
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
  }
  return counter;
}

absl::Status TorchCudaGenerator::Draw(absl::Span<float> to) {
  if (to.empty()) return absl::OkStatus();
  const uint64_t size = to.size();
  const uint64_t threads = draw_.Threads(size);
  const uint64_t iterations = draw_.Iterations(size);
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(draw_.seed),
                                       static_cast<uint32_t>(draw_.seed >> 32)};
  for (uint64_t iteration = 0; iteration < iterations; ++iteration) {
    const uint64_t position = draw_.offset / kWords + iteration;
    const uint64_t begin = iteration * threads * kWords;
    for (uint64_t thread = 0; thread < std::min(threads, size - begin); ++thread) {
      const std::array<uint32_t, 4> words =
          Philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                      static_cast<uint32_t>(thread), static_cast<uint32_t>(thread >> 32)},
                     key);
      const Pair low = BoxMuller(words[0], words[1]);
      const Pair high = BoxMuller(words[2], words[3]);
      const float values[kWords] = {low.first, low.second, high.first, high.second};
      for (uint64_t component = 0; component < kWords; ++component) {
        const uint64_t index = begin + component * threads + thread;
        if (index < size) to[index] = values[component] + 0.0f;  // The mean; -0 becomes 0.
      }
    }
  }
  Advance(size, &draw_);
  return absl::OkStatus();
}

absl::Status DeviceCudaGenerator::Draw(absl::Span<float> to) {
  if (to.empty()) return absl::OkStatus();
  PLUMBLINE_RETURN_IF_ERROR(device_.DrawTorchNormal(draw_, to));
  Advance(to.size(), &draw_);
  return absl::OkStatus();
}

}  // namespace plumbline::h3
