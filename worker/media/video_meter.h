#ifndef PLUMBLINE_WORKER_MEDIA_VIDEO_METER_H_
#define PLUMBLINE_WORKER_MEDIA_VIDEO_METER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cpu/thread_pool.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/media/frame_stream.h"

namespace plumbline::media {

// Side of the window of SSIM, and so the least side of a frame that can be measured, in pixels.
inline constexpr int64_t kSsimWindow = 7;

// Measures how far one video is from another, a frame at a time; it keeps one frame of differences
// and some rows. All sums are float64, in an order that depends on the frame's size alone, so that
// every number of threads gives the same bytes. One thread calls it.
//
// PSNR is 10 log10(1 / mean squared error), the error floored at 1e-30. SSIM is scikit-image's
// structural_similarity of float64 pixels with its defaults: uniform 7x7 windows, those alone that
// lie wholly inside, sample covariance (49/48), K1 0.01, K2 0.03, data range 1, the mean over
// channels. Temporal RMSE is the root mean square of the difference of the two videos' changes from
// one frame to the next.
class VideoMeter {
 public:
  // Frames of that size, no side less than kSsimWindow. `threads` must outlive it.
  VideoMeter(int64_t height, int64_t width, ThreadPool* threads);

  // The next frame of both. Where one has no float values its 8 bits stand for 1/255 each; where
  // neither has, equality is that of the bytes.
  void Add(const VideoFrame& subject, const VideoFrame& reference);

  // Fills in what is said of the pixels: the four figures of the whole (those of a video without
  // a second frame have a temporal RMSE of 0), the frames, equality, and the first frame with a
  // value that is not finite. Its figures, and those of the whole, are then NaN.
  void Finish(v1::QualityReport* report) const;

 private:
  struct RowSums {
    double squared_error = 0;
    double squared_change_error = 0;
    double ssim = 0;
  };

  // Of channel `channel`, rows [first, last) of the frame.
  void MeasureErrors(const float* subject, const float* reference, int64_t first, int64_t last);
  // Rows [first, last) of windows.
  void MeasureSsim(const float* subject, const float* reference, int64_t channel, int64_t first,
                   int64_t last);

  const int64_t height_;
  const int64_t width_;
  ThreadPool* const threads_;

  std::vector<double> previous_difference_;  // Subject minus reference, (3, height, width).
  std::vector<RowSums> rows_;                // Of the frame in work, (3, height).
  std::vector<float> widened_subject_;       // Where a frame comes as bytes.
  std::vector<float> widened_reference_;

  std::vector<v1::QualityReport::Frame> frames_;
  double squared_error_ = 0;
  double squared_change_error_ = 0;
  double ssim_ = 0;
  bool equal_ = true;
  std::optional<int32_t> first_nonfinite_;
};

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_VIDEO_METER_H_
