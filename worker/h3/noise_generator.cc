#include "worker/h3/noise_generator.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "worker/h3/noise_cpu.h"
#include "worker/h3/noise_philox.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kTorchCpuName = "torch-cpu";
constexpr absl::string_view kTorchCudaPrefix = "torch-cuda:";

}  // namespace

bool operator==(const Rng& a, const Rng& b) {
  return a.kind == b.kind &&
         (a.kind == Rng::Kind::kTorchCpu || a.multiprocessors == b.multiprocessors);
}

absl::StatusOr<Rng> ParseRng(absl::string_view text, absl::string_view field) {
  Rng rng;
  if (text == kTorchCpuName) {
    rng.kind = Rng::Kind::kTorchCpu;
    return rng;
  }
  absl::string_view number = text;
  if (!absl::ConsumePrefix(&number, kTorchCudaPrefix) ||
      !absl::SimpleAtoi(number, &rng.multiprocessors) || rng.multiprocessors < 1 ||
      rng.multiprocessors > kMaxMultiprocessors) {
    return FieldError(field, absl::StrCat("unknown generator ", Quoted(text)),
                      absl::StrCat(kTorchCpuName, ", or ", kTorchCudaPrefix,
                                   "MULTIPROCESSORS with 1 to ", kMaxMultiprocessors));
  }
  return rng;
}

std::string FormatRng(const Rng& rng) {
  if (rng.kind == Rng::Kind::kTorchCpu) return std::string(kTorchCpuName);
  return absl::StrCat(kTorchCudaPrefix, rng.multiprocessors);
}

std::unique_ptr<NormalGenerator> MakeNormalGenerator(const Rng& rng, uint64_t seed,
                                                     Device* device) {
  if (rng.kind == Rng::Kind::kTorchCpu) return std::make_unique<TorchCpuGenerator>(seed);
  if (device == nullptr || device->kind() == DeviceKind::kCpu) {
    return std::make_unique<TorchCudaGenerator>(seed, rng.multiprocessors);
  }
  return std::make_unique<DeviceCudaGenerator>(seed, rng.multiprocessors, *device);
}

}  // namespace plumbline::h3
