#ifndef PLUMBLINE_SERVER_API_COMPARISON_SIDES_H_
#define PLUMBLINE_SERVER_API_COMPARISON_SIDES_H_

#include "proto/plumbline/v1/comparison.pb.h"
#include "server/api/api.h"

namespace plumbline::server {

// Fills in, of a task that compares one seed of generations, what each side has of it. A side whose
// job is gone has no media, and says why. Blocks on the disk.
void FillSides(const Api& api, v1::ComparisonSpec::GenerationPair* pair);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_COMPARISON_SIDES_H_
