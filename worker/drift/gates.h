#ifndef PLUMBLINE_WORKER_DRIFT_GATES_H_
#define PLUMBLINE_WORKER_DRIFT_GATES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/block_replay.pb.h"
#include "proto/plumbline/v1/drift.pb.h"
#include "worker/drift/block_entries.h"

// What a block replay is held to. All functions are pure.

namespace plumbline::drift {

// How the candidate of a replay came about.
enum class CandidateKind {
  kExecuted,
  kCaptured,  // repeat, batch and isolated cannot be measured
};

// Tries the gates of one entry in their order and sets `gates` and `passed`. What the gates read
// (implementation, checks and comparisons) must be set. `executed` says that the requested
// implementation ran in every execution of the entry's node; a fused operation of the requested
// implementation counts as that.
void JudgeEntry(const BlockEntry& entry, CandidateKind kind, bool executed,
                v1::EntryReport* report);

// The first entries, in the reports' order, whose bytes differ. What was not measured stays unset.
v1::Firsts FindFirsts(const std::vector<v1::EntryReport>& entries, CandidateKind kind,
                      bool backward);

// The verdict over judged entries. `where` names the layout in the sentence; `qualifications` are
// what limits it beside what the gates could not measure.
v1::Verdict JudgeReplay(const std::vector<v1::EntryReport>& entries, absl::string_view where,
                        std::vector<std::string> qualifications);

// The verdict of a replay of a reference, golden or a provider: the gates are the candidates'.
v1::Verdict NotJudged(absl::string_view where, absl::string_view composition);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_GATES_H_
