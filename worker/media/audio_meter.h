#ifndef PLUMBLINE_WORKER_MEDIA_AUDIO_METER_H_
#define PLUMBLINE_WORKER_MEDIA_AUDIO_METER_H_

#include "proto/plumbline/v1/generation.pb.h"
#include "worker/media/frame_stream.h"

namespace plumbline::media {

// Fills in what is said of the sound of `subject` against `reference`, two tracks with the same
// numbers of channels and samples, at least one of each, and one rate. Sums are float64, in the
// order of the samples.
//
// `audio_relative_l2` is the norm of the difference over the norm of the reference, both channels
// together; of a silent reference, the norm of the subject. `audio_swapped_relative_l2` is the same
// with the subject's two channels exchanged. The lag is that of the largest cross-correlation,
// summed over the channels, among lags of at most one second either way; positive where the
// subject comes later. Where a sample is not finite the figures are NaN and it is located.
void MeasureAudio(const AudioTrack& subject, const AudioTrack& reference,
                  v1::QualityReport* report);

}  // namespace plumbline::media

#endif  // PLUMBLINE_WORKER_MEDIA_AUDIO_METER_H_
