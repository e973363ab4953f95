#ifndef PLUMBLINE_CLIENT_GENERATION_TEXT_H_
#define PLUMBLINE_CLIENT_GENERATION_TEXT_H_

#include <string>

#include "client/style.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::client {

// One seed for a person: what ran, attempt by attempt with its worker, why it ended and what it
// did; sensitivity; drift of the latents; the latents' digests. `task` holds a generation.
std::string GenerationText(const v1::TaskReport& task, const Style& style);

// One step replayed. `task` holds a diagnostic.
std::string DiagnosticText(const v1::TaskReport& task, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_GENERATION_TEXT_H_
