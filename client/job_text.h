#ifndef PLUMBLINE_CLIENT_JOB_TEXT_H_
#define PLUMBLINE_CLIENT_JOB_TEXT_H_

#include <string>
#include <vector>

#include "client/style.h"
#include "proto/plumbline/v1/event.pb.h"
#include "proto/plumbline/v1/job.pb.h"
#include "proto/plumbline/v1/job_service.pb.h"
#include "proto/plumbline/v1/worker.pb.h"

// What `jobs` and `workers` print.

namespace plumbline::client {

// One line a job.
std::string JobTableText(const std::vector<v1::Job>& jobs, const Style& style);

// One job with its tasks, attempts, artifacts, and its error if it failed.
std::string JobText(const v1::Job& job, const Style& style);

// Whether a person who watches a job is told of the event: not of a picture, which a terminal
// cannot show, nor of progress in steps, each of which is an event of its own.
bool HasLine(const v1::JobEvent& event);

// One event as a line with its sequence number; without a newline.
std::string EventText(const v1::JobEvent& event, const Style& style);

// Two jobs side by side: what was asked differently, then each figure.
std::string JobComparisonText(const v1::JobComparison& comparison, const Style& style);

// One line a worker.
std::string WorkerTableText(const std::vector<v1::Worker>& workers, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_JOB_TEXT_H_
