#ifndef PLUMBLINE_WORKER_IN_USE_H_
#define PLUMBLINE_WORKER_IN_USE_H_

namespace plumbline::worker {

// Reason of FAILED_PRECONDITION where another process has what a worker needs for itself: its
// device or its state folder. It may be free later.
inline constexpr char kInUseReason[] = "IN_USE";

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_IN_USE_H_
