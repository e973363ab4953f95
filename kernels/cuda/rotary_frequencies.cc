#include "kernels/cuda/rotary_frequencies.h"

#include "absl/strings/str_cat.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::cuda {

absl::Status CheckRotaryFrequencies(absl::string_view name, const Attributes& attributes) {
  if (attributes.rotary_frequencies <= kMostRotaryFrequencies) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", attributes.rotary_frequencies,
                                                 " rotary frequencies; at most ",
                                                 kMostRotaryFrequencies));
}

RotaryFrequencies MakeRotaryFrequencies(const Attributes& attributes) {
  RotaryFrequencies frequencies = {};
  frequencies.count = static_cast<int>(attributes.rotary_frequencies);
  const double log_theta = Log(static_cast<double>(attributes.rotary_theta));
  for (int j = 0; j < frequencies.count; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(2 * frequencies.count);
    const float power = static_cast<float>(Exp(static_cast<double>(exponent) * log_theta));
    frequencies.inverse[j] = 1.0f / power;
  }
  return frequencies;
}

}  // namespace plumbline::cuda
