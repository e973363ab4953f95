#ifndef PLUMBLINE_SERVER_API_JOB_FILTER_H_
#define PLUMBLINE_SERVER_API_JOB_FILTER_H_

#include "proto/plumbline/v1/job_service.pb.h"

namespace plumbline::server {

// Whether a job matches what of the filter can change while it lives: states and outcomes.
bool MatchesState(const v1::JobFilter& filter, const v1::Job& job);
// Whether it matches the rest.
bool MatchesIdentity(const v1::JobFilter& filter, const v1::Job& job);

inline bool Matches(const v1::JobFilter& filter, const v1::Job& job) {
  return MatchesIdentity(filter, job) && MatchesState(filter, job);
}

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_JOB_FILTER_H_
