// Requests for comparisons of media.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "client/measure_text.h"
#include "client/request_parts.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

constexpr size_t kRunIdDigits = 64;

// What people see of an input: no folders of theirs.
std::string LabelOf(const std::string& written) {
  return IsRunName(written) ? written : std::filesystem::path(written).filename().string();
}

// Whether a worker without FFmpeg could not read it, as far as can be told here.
bool IsMp4(const std::string& written) {
  char head[8] = {};
  // A FIFO must not be waited for: neither open does so, nor pread, which fails on it.
  const int descriptor = open(written.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return false;
  const ssize_t count = pread(descriptor, head, sizeof(head), 0);
  close(descriptor);
  return count == sizeof(head) && std::memcmp(head + 4, "ftyp", 4) == 0;
}

}  // namespace

bool IsJobName(absl::string_view written) { return absl::StartsWith(written, "jobs/"); }

bool IsRunName(absl::string_view written) {
  if (absl::StartsWith(written, "runs/")) return true;
  std::error_code error;
  return written.size() == kRunIdDigits &&
         std::all_of(written.begin(), written.end(),
                     [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); }) &&
         !std::filesystem::exists(std::string(written), error);
}

absl::StatusOr<JobRequest> MediaComparisonRequest(const CompareMedia& flags,
                                                  const InputResolver& resolve) {
  for (const auto& [flag, is_set] :
       {std::pair("--spread", !flags.spread.empty()), std::pair("--repeat", !flags.repeat.empty()),
        std::pair("--seeds", !flags.seeds.empty())}) {
    if (!is_set) continue;
    return FieldError(flag, "belongs to comparisons of generation jobs", "A and B as jobs/NAME");
  }
  JobRequest request;
  v1::ComparisonSpec::MediaPair& pair = *request.spec.mutable_comparison()->mutable_media();
  PLUMBLINE_RETURN_IF_ERROR(
      FillInput("A", "comparison.media.a", flags.a, resolve, pair.mutable_a(), &request.flags));
  PLUMBLINE_RETURN_IF_ERROR(
      FillInput("B", "comparison.media.b", flags.b, resolve, pair.mutable_b(), &request.flags));
  pair.set_a_label(LabelOf(flags.a));
  pair.set_b_label(LabelOf(flags.b));
  if (!flags.difference.empty() && !absl::EndsWithIgnoreCase(flags.difference, ".mp4")) {
    return FieldError("--diff", absl::StrCat(Quoted(flags.difference), " is no name of an MP4"),
                      "FILE.mp4");
  }
  pair.set_difference_video(!flags.difference.empty());
  request.flags.Add("comparison.media.difference_video", "--diff", flags.difference);
  request.spec.mutable_placement()->set_media(IsMp4(flags.a) || IsMp4(flags.b));
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.difference = flags.difference;
  request.wait = true;
  return request;
}

absl::StatusOr<JobRequest> GenerationComparisonRequest(const CompareMedia& flags) {
  if (!flags.difference.empty()) {
    return FieldError("--diff", "a video of the difference is made of two files or runs", "none");
  }
  JobRequest request;
  v1::ComparisonSpec::GenerationPair& pair =
      *request.spec.mutable_comparison()->mutable_generations();
  pair.set_a(JobName(flags.a));
  pair.set_b(JobName(flags.b));
  for (const std::string& job : flags.spread) pair.add_spread(JobName(job));
  if (!flags.repeat.empty()) pair.set_repeat(JobName(flags.repeat));
  PLUMBLINE_RETURN_IF_ERROR(
      FillSeeds(flags.seeds, "comparison.generations.seeds", pair.mutable_seeds(), &request.flags));
  request.flags.Add("comparison.generations.a", "A", flags.a);
  request.flags.Add("comparison.generations.b", "B", flags.b);
  request.flags.Add("comparison.generations.spread", "--spread", "");
  request.flags.Add("comparison.generations.repeat", "--repeat", flags.repeat);
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.wait = true;
  return request;
}

}  // namespace plumbline::client
