#ifndef PLUMBLINE_CLIENT_RUN_TEXT_H_
#define PLUMBLINE_CLIENT_RUN_TEXT_H_

#include <string>
#include <vector>

#include "client/style.h"
#include "proto/plumbline/v1/admin_service.pb.h"
#include "proto/plumbline/v1/generation.pb.h"

// Saved runs for a person.

namespace plumbline::client {

// `listed`: the totals of the store; its runs are ignored.
std::string RunTableText(const std::vector<v1::Run>& runs, const v1::ListRunsResponse& listed,
                         const Style& style);
std::string RunText(const v1::Run& run, const Style& style);
std::string VerifyRunText(const std::string& run, const v1::VerifyRunResponse& verified,
                          const Style& style);

// Two runs, step by step, by the digests of what is saved. `*equal`: every step that one has the
// other has too, with the same bytes.
std::string RunComparisonText(const v1::Run& a, const v1::Run& b, const Style& style, bool* equal);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_RUN_TEXT_H_
