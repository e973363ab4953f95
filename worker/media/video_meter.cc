#include "worker/media/video_meter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace plumbline::media {
namespace {

constexpr int64_t kChannels = 3;
constexpr double kLeastSquaredError = 1e-30;  // So that equal videos have 300 dB.
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr double kWindowPixels = kSsimWindow * kSsimWindow;
constexpr double kSampleCovariance = kWindowPixels / (kWindowPixels - 1);
constexpr double kC1 = 0.01 * 0.01;
constexpr double kC2 = 0.03 * 0.03;

// Rows that one thread takes at a time. Sums over windows start anew in each such band.
constexpr int64_t kBandRows = 32;

// A sum that a compiler may keep in vector registers without choosing the order itself.
constexpr int64_t kLanes = 8;

double SumOfLanes(const double* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

double SumOf(const double* values, int64_t count) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane];
  }
  for (; i < count; ++i) lanes[i % kLanes] += values[i];
  return SumOfLanes(lanes);
}

double Psnr(double squared_error, double count) {
  return 10 * std::log10(1 / std::max(squared_error / count, kLeastSquaredError));
}

const float* Widened(const VideoFrame& frame, std::vector<float>* widened) {
  if (!frame.values.empty()) return frame.values.data();
  widened->resize(frame.bytes.size());
  for (size_t i = 0; i < frame.bytes.size(); ++i) (*widened)[i] = frame.bytes[i] / 255.0f;
  return widened->data();
}

// The sums of a window's column over its seven rows, for every column.
class ColumnSums {
 public:
  explicit ColumnSums(int64_t width) : width_(width), sums_(static_cast<size_t>(5 * width)) {}

  // Takes a row in (`sign` 1) or out (-1). Taken out again it leaves less behind than 1e-14, for
  // pixels in [0, 1].
  void Add(const float* subject, const float* reference, double sign) {
    double* const x = Of(0);
    double* const y = Of(1);
    double* const xx = Of(2);
    double* const yy = Of(3);
    double* const xy = Of(4);
    for (int64_t i = 0; i < width_; ++i) {
      const double a = subject[i];
      const double b = reference[i];
      x[i] += sign * a;
      y[i] += sign * b;
      xx[i] += sign * (a * a);
      yy[i] += sign * (b * b);
      xy[i] += sign * (a * b);
    }
  }

  // SSIM of every window of the row, into `values`; there are width - 6 of them.
  void Ssim(double* values) const {
    const double* const x = Of(0);
    const double* const y = Of(1);
    const double* const xx = Of(2);
    const double* const yy = Of(3);
    const double* const xy = Of(4);
    for (int64_t i = 0; i + kSsimWindow <= width_; ++i) {
      const double mean_x = Window(x + i) / kWindowPixels;
      const double mean_y = Window(y + i) / kWindowPixels;
      const double variance_x =
          kSampleCovariance * (Window(xx + i) / kWindowPixels - mean_x * mean_x);
      const double variance_y =
          kSampleCovariance * (Window(yy + i) / kWindowPixels - mean_y * mean_y);
      const double covariance =
          kSampleCovariance * (Window(xy + i) / kWindowPixels - mean_x * mean_y);
      values[i] = ((2 * mean_x * mean_y + kC1) * (2 * covariance + kC2)) /
                  ((mean_x * mean_x + mean_y * mean_y + kC1) * (variance_x + variance_y + kC2));
    }
  }

 private:
  double* Of(int64_t quantity) { return sums_.data() + quantity * width_; }
  const double* Of(int64_t quantity) const { return sums_.data() + quantity * width_; }

  static double Window(const double* column) {
    return ((column[0] + column[1]) + (column[2] + column[3])) +
           ((column[4] + column[5]) + column[6]);
  }

  const int64_t width_;
  std::vector<double> sums_;
};

}  // namespace

VideoMeter::VideoMeter(int64_t height, int64_t width, ThreadPool* threads)
    : height_(height),
      width_(width),
      threads_(threads),
      previous_difference_(static_cast<size_t>(kChannels * height * width)),
      rows_(static_cast<size_t>(kChannels * height)) {}

void VideoMeter::MeasureErrors(const float* subject, const float* reference, int64_t first,
                               int64_t last) {
  const bool has_previous = !frames_.empty();
  for (int64_t row = first; row < last; ++row) {
    const float* const a = subject + row * width_;
    const float* const b = reference + row * width_;
    double* const previous = previous_difference_.data() + row * width_;
    double error[kLanes] = {};
    double change[kLanes] = {};
    const auto take = [&](int64_t i, int64_t lane) {
      const double difference = static_cast<double>(a[i]) - b[i];
      const double changed = difference - previous[i];
      error[lane] += difference * difference;
      change[lane] += changed * changed;
      previous[i] = difference;
    };
    int64_t i = 0;
    for (; i + kLanes <= width_; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) take(i + lane, lane);
    }
    for (; i < width_; ++i) take(i, i % kLanes);
    RowSums& sums = rows_[static_cast<size_t>(row)];
    sums.squared_error = SumOfLanes(error);
    sums.squared_change_error = has_previous ? SumOfLanes(change) : 0;
  }
}

void VideoMeter::MeasureSsim(const float* subject, const float* reference, int64_t channel,
                             int64_t first, int64_t last) {
  const auto row_of = [&](const float* frame, int64_t row) {
    return frame + (channel * height_ + row) * width_;
  };
  ColumnSums columns(width_);
  std::vector<double> values(static_cast<size_t>(width_ - kSsimWindow + 1));
  for (int64_t row = first; row < first + kSsimWindow - 1; ++row) {
    columns.Add(row_of(subject, row), row_of(reference, row), 1);
  }
  for (int64_t row = first; row < last; ++row) {
    const int64_t entering = row + kSsimWindow - 1;
    columns.Add(row_of(subject, entering), row_of(reference, entering), 1);
    columns.Ssim(values.data());
    rows_[static_cast<size_t>(channel * height_ + row)].ssim =
        SumOf(values.data(), static_cast<int64_t>(values.size()));
    columns.Add(row_of(subject, row), row_of(reference, row), -1);
  }
}

void VideoMeter::Add(const VideoFrame& subject, const VideoFrame& reference) {
  const bool by_bytes = subject.values.empty() && reference.values.empty();
  const float* const a = Widened(subject, &widened_subject_);
  const float* const b = Widened(reference, &widened_reference_);
  const int64_t values = kChannels * height_ * width_;
  equal_ = equal_ && (by_bytes ? subject.bytes == reference.bytes
                               : std::memcmp(a, b, static_cast<size_t>(values) * sizeof(*a)) == 0);

  threads_->ParallelFor(0, kChannels * height_, kBandRows,
                        [&](int64_t first, int64_t last) { MeasureErrors(a, b, first, last); });
  const int64_t window_rows = height_ - kSsimWindow + 1;
  const int64_t bands = (window_rows + kBandRows - 1) / kBandRows;
  threads_->ParallelFor(0, kChannels * bands, 1, [&](int64_t first, int64_t last) {
    for (int64_t band = first; band < last; ++band) {
      const int64_t row = band % bands * kBandRows;
      MeasureSsim(a, b, band / bands, row, std::min(row + kBandRows, window_rows));
    }
  });

  RowSums sums;
  for (const RowSums& row : rows_) {
    sums.squared_error += row.squared_error;
    sums.squared_change_error += row.squared_change_error;
    sums.ssim += row.ssim;
  }
  // The windows of a whole frame.
  sums.ssim /= static_cast<double>(kChannels * window_rows * (width_ - kSsimWindow + 1));
  // Squares of float32 values cannot overflow, so only a value that is not finite does this.
  if (!std::isfinite(sums.squared_error)) {
    if (!first_nonfinite_.has_value()) first_nonfinite_ = static_cast<int32_t>(frames_.size());
    sums.squared_error = sums.ssim = kNan;
  }
  squared_error_ += sums.squared_error;
  squared_change_error_ += sums.squared_change_error;
  ssim_ += sums.ssim;
  const auto pixels = static_cast<double>(values);
  v1::QualityReport::Frame frame;
  frame.set_psnr_db(Psnr(sums.squared_error, pixels));
  frame.set_ssim(sums.ssim);
  frame.set_temporal_rmse(std::sqrt(sums.squared_change_error / pixels));
  frames_.push_back(std::move(frame));
}

void VideoMeter::Finish(v1::QualityReport* report) const {
  const auto frames = static_cast<double>(frames_.size());
  const double pixels = static_cast<double>(kChannels * height_ * width_) * frames;
  const double changed_pixels = static_cast<double>(kChannels * height_ * width_) * (frames - 1);
  report->set_psnr_db(Psnr(squared_error_, pixels));
  report->set_ssim(ssim_ / frames);
  report->set_temporal_rmse(changed_pixels > 0 ? std::sqrt(squared_change_error_ / changed_pixels)
                                               : 0);
  report->set_frames_bitwise_equal(equal_);
  report->mutable_frames()->Add(frames_.begin(), frames_.end());
  if (first_nonfinite_.has_value()) {
    report->set_first_nonfinite_frame(*first_nonfinite_);
    report->set_psnr_db(kNan);
    report->set_ssim(kNan);
    report->set_temporal_rmse(kNan);
  }
}

}  // namespace plumbline::media
