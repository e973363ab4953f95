#include "worker/media/audio_meter.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <kissfft/kissfft.hh>
#include <limits>
#include <vector>

namespace plumbline::media {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Samples = absl::Span<const float>;

struct Error {
  double squared_difference = 0;
  double squared_reference = 0;
  double squared_subject = 0;
  double max_abs = 0;

  void Add(Samples subject, Samples reference) {
    for (size_t i = 0; i < reference.size(); ++i) {
      const double x = subject[i];
      const double r = reference[i];
      squared_difference += (x - r) * (x - r);
      squared_reference += r * r;
      squared_subject += x * x;
      // Keeps a NaN.
      if (!(std::abs(x - r) <= max_abs) && !std::isnan(max_abs)) max_abs = std::abs(x - r);
    }
  }

  double RelativeL2() const {
    if (squared_reference == 0) return std::sqrt(squared_subject);
    return std::sqrt(squared_difference) / std::sqrt(squared_reference);
  }
};

// The transform of a channel, behind it as many zeros as keep the correlation from wrapping.
std::vector<std::complex<double>> Transform(const kissfft<double>& fft, Samples samples,
                                            size_t size) {
  std::vector<std::complex<double>> padded(size);
  std::copy(samples.begin(), samples.end(), padded.begin());
  std::vector<std::complex<double>> transformed(size);
  fft.transform(padded.data(), transformed.data());
  return transformed;
}

int32_t BestLag(const AudioTrack& subject, const AudioTrack& reference) {
  const int64_t samples = reference.SamplesPerChannel();
  const int64_t longest = std::min<int64_t>(samples - 1, reference.sample_rate_hz);
  size_t size = 1;
  while (size < static_cast<size_t>(samples + longest)) size *= 2;
  const kissfft<double> forward(size, /*inverse=*/false);
  std::vector<std::complex<double>> product(size);
  for (int64_t channel = 0; channel < reference.channels; ++channel) {
    const auto x = Transform(forward, subject.Channel(channel), size);
    const auto r = Transform(forward, reference.Channel(channel), size);
    for (size_t i = 0; i < size; ++i) product[i] += x[i] * std::conj(r[i]);
  }
  std::vector<std::complex<double>> correlation(size);
  kissfft<double>(size, /*inverse=*/true).transform(product.data(), correlation.data());

  const auto at = [&](int64_t lag) {
    return correlation[static_cast<size_t>(lag < 0 ? static_cast<int64_t>(size) + lag : lag)]
        .real();
  };
  // What the transforms' own rounding could make of two equal values.
  double scale = 0;
  for (int64_t lag = -longest; lag <= longest; ++lag) scale = std::max(scale, std::abs(at(lag)));
  const double margin = scale * 1e-12;
  int64_t best = 0;
  // The nearer of equal ones, so from the middle outwards.
  for (int64_t distance = 1; distance <= longest; ++distance) {
    for (const int64_t lag : {distance, -distance}) {
      if (at(lag) > at(best) + margin) best = lag;
    }
  }
  return static_cast<int32_t>(best);
}

// Of any channel; -1: all are finite.
int64_t FirstNonfinite(const AudioTrack& track) {
  int64_t first = -1;
  for (int64_t channel = 0; channel < track.channels; ++channel) {
    const Samples samples = track.Channel(channel);
    const auto found =
        std::find_if(samples.begin(), samples.end(), [](float x) { return !std::isfinite(x); });
    if (found == samples.end()) continue;
    const int64_t sample = found - samples.begin();
    if (first < 0 || sample < first) first = sample;
  }
  return first;
}

}  // namespace

void MeasureAudio(const AudioTrack& subject, const AudioTrack& reference,
                  v1::QualityReport* report) {
  Error whole;
  const int64_t samples = reference.SamplesPerChannel();
  for (int64_t c = 0; c < reference.channels; ++c) {
    const Samples x = subject.Channel(c);
    const Samples r = reference.Channel(c);
    Error channel;
    channel.Add(x, r);
    whole.Add(x, r);
    v1::QualityReport::AudioChannel& described = *report->add_channels();
    described.set_relative_l2(channel.RelativeL2());
    described.set_max_abs(channel.max_abs);
    for (int64_t start = 0; start < samples; start += reference.sample_rate_hz) {
      Error second;
      second.Add(x.subspan(start, reference.sample_rate_hz),
                 r.subspan(start, reference.sample_rate_hz));
      described.add_seconds(second.RelativeL2());
    }
  }
  report->set_audio_relative_l2(whole.RelativeL2());
  report->set_audio_bitwise_equal(
      std::equal(subject.samples.begin(), subject.samples.end(), reference.samples.begin()));
  if (reference.channels == 2) {
    Error swapped;
    swapped.Add(subject.Channel(1), reference.Channel(0));
    swapped.Add(subject.Channel(0), reference.Channel(1));
    report->set_audio_swapped_relative_l2(swapped.RelativeL2());
  }

  const int64_t bad = FirstNonfinite(subject);
  const int64_t bad_reference = FirstNonfinite(reference);
  if (bad < 0 && bad_reference < 0) {
    report->set_audio_lag_samples(BestLag(subject, reference));
    return;
  }
  report->set_first_nonfinite_sample(
      bad < 0 || (bad_reference >= 0 && bad_reference < bad) ? bad_reference : bad);
  report->set_audio_relative_l2(kNan);
}

}  // namespace plumbline::media
