#ifndef PLUMBLINE_SERVER_SCHEDULER_MEDIA_VALIDATION_H_
#define PLUMBLINE_SERVER_SCHEDULER_MEDIA_VALIDATION_H_

#include <string>

#include "proto/plumbline/v1/comparison.pb.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "server/scheduler/spec_checker.h"

namespace plumbline::server {

// What can be seen to be wrong with limits on quality, `field` being theirs, and with comparisons
// of media and of generations.
void CheckBounds(const std::string& field, const v1::QualityBounds& bounds, SpecChecker* checker);
void CheckMediaPair(const v1::ComparisonSpec::MediaPair& pair, SpecChecker* checker);
void CheckGenerationPair(const v1::ComparisonSpec::GenerationPair& pair, SpecChecker* checker);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_MEDIA_VALIDATION_H_
