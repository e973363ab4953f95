#ifndef PLUMBLINE_WORKER_H3_DECODERS_COMPOSITIONS_H_
#define PLUMBLINE_WORKER_H3_DECODERS_COMPOSITIONS_H_

#include "absl/status/statusor.h"
#include "kernels/registry.h"
#include "worker/h3/composition.h"
#include "worker/h3/decoders/blend.h"
#include "worker/h3/graph.h"

namespace plumbline::h3 {

// One composition over both decoders.
struct DecoderComposition {
  Composition composition;
  ResolvedComposition video;
  ResolvedComposition audio;
  BlendRounding blend = BlendRounding::kFloat32;
};

// The registry and the graphs must outlive the result. INVALID_ARGUMENT on field "composition"
// names an implementation that does not exist, and a node that neither decoder has.
absl::StatusOr<DecoderComposition> ResolveDecoders(const Composition& composition,
                                                   const Graph& video, const Graph& audio,
                                                   const Registry& registry, DeviceKind device);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_DECODERS_COMPOSITIONS_H_
