#ifndef PLUMBLINE_SERVER_SCHEDULER_JOB_PLAN_H_
#define PLUMBLINE_SERVER_SCHEDULER_JOB_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/job.pb.h"
#include "server/store/record.pb.h"

// How a job is split into tasks.

namespace plumbline::server {

v1::JobKind KindOf(const v1::JobSpec& spec);
// As the CLI calls it, e.g. "block-replay".
absl::string_view KindName(v1::JobKind kind);

// OK if this server can split such a job; UNIMPLEMENTED, naming the kind, if it cannot.
absl::Status CheckKind(const v1::JobSpec& spec);

// The layout's name, or its sizes as --layout takes them: "7,2,6,8,5,first".
std::string LayoutTitle(const v1::Layout& layout);

// "TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES", as the vocabulary writes them.
v1::Layout LayoutOfSizes(absl::string_view sizes);

// The sizes of a layout that only has a name, as it is where it has none or an unknown one.
v1::Layout ResolveLayout(const v1::Layout& layout);
// Rows of a packed sequence of this (resolved) layout.
int64_t LayoutRows(const v1::Layout& layout);

// The tasks of a job whose specification was checked, QUEUED, each with its share of the
// specification and what it needs of a worker.
std::vector<store::TaskRecord> PlanTasks(const v1::Job& job);

// The tasks that compare the decoded seeds of a generation with what it was generated against, to
// stand behind its own tasks, `seeds`; each waits for its seed. None where there is nothing to
// compare with or nothing is decoded. `number` is the job's creation number.
std::vector<store::TaskRecord> PlanQuality(const v1::Job& job, int64_t number,
                                           const std::vector<store::TaskRecord>& seeds);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_JOB_PLAN_H_
