// Words of the product that programs know without linking a kernel: what a request may name.
#ifndef PLUMBLINE_COMMON_VOCABULARY_H_
#define PLUMBLINE_COMMON_VOCABULARY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plumbline {

// A negative control: a fault that a job can be asked to put into its candidate, and the place
// where the job must then find it. A fault that several kinds of job know has an entry for each.
struct FaultInfo {
  absl::string_view job;             // Kind, as the CLI calls it: "block-replay".
  absl::string_view name;            // E.g. "qk-heads".
  absl::string_view expected_entry;  // What first_failure must name.
  absl::string_view expected_gate;   // The gate it must name; empty: any.
  absl::string_view sentence;        // What is wrong with the candidate, for a person.
  // Where it shows: at so many latent frames or more. At fewer it changes nothing.
  int64_t least_latent_frames = 0;
};

// The faults that any layout shows, in the order in which they are listed.
absl::Span<const FaultInfo> Faults();

// Those that only the layouts of a sweep show, likewise.
absl::Span<const FaultInfo> SweepFaults();

// Null if jobs of this kind know no such fault.
const FaultInfo* FindFault(absl::string_view job, absl::string_view name);

// The faults of one kind of job as an error lists them: "swiglu-halves, qk-heads, ...".
std::string FaultNames(absl::string_view job);

// The shape of a packed sequence that has a name.
struct NamedLayout {
  absl::string_view name;
  absl::string_view sizes;  // "TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES".
};

// "tiny", "small", "medium", "released".
absl::Span<const NamedLayout> NamedLayouts();

// What stands for all of SweepLayouts() in a request.
inline constexpr absl::string_view kSweepLayouts = "sweep";

// One layout for every duration that the released model takes, 17 n + 5 frames from 124 to 345,
// with the sound that goes with it, on small canvases from 1:4 to 4:1, without keyframes and with
// either and both, rows odd and even. In the form of NamedLayout::sizes.
absl::Span<const absl::string_view> SweepLayouts();

// What a composition may name instead of single nodes: "gemms", "norms", "qk_norm", "residuals",
// "interim", "all".
absl::Span<const absl::string_view> NodeGroups();

// The nodes of a block in execution order.
absl::Span<const absl::string_view> BlockNodes();

// The nodes of the transformer around its blocks and the refiner's, in execution order.
absl::Span<const absl::string_view> BoundaryNodes();

// The built-in implementations, by the names that a composition gives them. A worker may know
// plug-ins beside them.
absl::Span<const absl::string_view> Implementations();

// Whether NAME of plugin/NAME may be this; kPluginNameForm says what it may be.
bool IsPluginName(absl::string_view name);
inline constexpr char kPluginNameForm[] = "1 to 63 characters of [A-Za-z0-9._-]";

// The provider compositions, without "provider/": those that an ensemble rule is made of unless a
// request names others.
absl::Span<const absl::string_view> ProviderVariants();

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_VOCABULARY_H_
