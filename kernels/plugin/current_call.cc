#include "kernels/plugin/current_call.h"

#include <algorithm>
#include <cstring>

namespace plumbline::plugin {
namespace {

// Written between calls alone, so that who sees `running` true sees a whole note.
CallNote note;
std::atomic<bool> running{false};
std::atomic<int64_t> calls_begun{0};

template <size_t N>
void CopyText(absl::string_view from, char (&to)[N]) {
  const size_t bytes = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), bytes);
  to[bytes] = 0;
}

}  // namespace

CurrentCall::CurrentCall(absl::string_view implementation, absl::string_view node, bool backward) {
  CopyText(implementation, note.implementation);
  CopyText(node, note.node);
  CopyText(backward ? "backward" : "forward", note.direction);
  ++calls_begun;
  running = true;
}

CurrentCall::~CurrentCall() { running = false; }

const CallNote* RunningCall() { return running ? &note : nullptr; }

int64_t CallsBegun() { return calls_begun; }

}  // namespace plumbline::plugin
