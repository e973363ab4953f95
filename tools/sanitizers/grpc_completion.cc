// Tells ThreadSanitizer what happens before what where gRPC hands work from thread to thread.
//
// Debian's gRPC is not built with ThreadSanitizer, so the sanitizer does not see what it orders by
// its own atomics and by epoll: that whatever a thread did before it started an operation happens
// before that operation's completion is told, on whichever thread. The functions here stand before
// the shared libraries' own, call those, and say just that, with the operation's tag. So races in
// handlers are reported, and what gRPC itself does needs no suppression but one. They are linked
// into `--config=tsan` alone.

#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpcpp/support/callback_common.h>
#include <grpcpp/support/server_callback.h>

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace {

template <typename Function>
Function* Next(const char* symbol) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol));
}

grpc_event Acquired(grpc_event event) {
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

}  // namespace

extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t nops, void* tag,
                                      void* reserved) {
  static auto* const next = Next<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  __tsan_release(tag);
  return next(call, ops, nops, tag, reserved);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* const next =
      Next<decltype(grpc_completion_queue_next)>("grpc_completion_queue_next");
  return Acquired(next(queue, deadline, reserved));
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static auto* const next =
      Next<decltype(grpc_completion_queue_pluck)>("grpc_completion_queue_pluck");
  return Acquired(next(queue, tag, deadline, reserved));
}

// What a callback's completion is told to. Inline in gRPC's header: these names, of which the
// linker prefers the definition that is not, are StaticRun of the two classes.
void RunWithSuccess(grpc_completion_queue_functor* tag, int ok) __asm__(
    "_ZN4grpc8internal22CallbackWithSuccessTag9StaticRunEP29grpc_completion_queue_functori");
void RunWithStatus(grpc_completion_queue_functor* tag, int ok) __asm__(
    "_ZN4grpc8internal21CallbackWithStatusTag9StaticRunEP29grpc_completion_queue_functori");

void RunWithSuccess(grpc_completion_queue_functor* tag, int ok) {
  __tsan_acquire(tag);
  static_cast<grpc::internal::CallbackWithSuccessTag*>(tag)->Run(ok != 0);
}

void RunWithStatus(grpc_completion_queue_functor* tag, int ok) {
  __tsan_acquire(tag);
  static_cast<grpc::internal::CallbackWithStatusTag*>(tag)->Run(ok != 0);
}

// Threads that gRPC made for itself: it ends them when its last user is gone, on a thread that
// nobody waits for, and the process may end first.
const char* __tsan_default_suppressions();
const char* __tsan_default_suppressions() { return "thread:grpc_core::Thread::Thread\n"; }

}  // extern "C"

// When a call is over or cancelled, gRPC may tell so on a thread that it picks within its library.
// Each of these stands in the other's place there, and says what came before.
namespace grpc {
namespace internal {
namespace {

class Done : public ServerCallbackCall {
 public:
  explicit Done(ServerCallbackCall* call) : call_(call) {}

  void CallOnDone() override {
    __tsan_acquire(call_);
    call_->CallOnDone();
    delete this;
  }
  ServerReactor* reactor() override { return call_->reactor(); }

 private:
  ServerCallbackCall* const call_;
};

class Cancelled : public ServerReactor {
 public:
  Cancelled(ServerCallbackCall* call, ServerReactor* reactor) : call_(call), reactor_(reactor) {}

  void OnCancel() override {
    __tsan_acquire(reactor_);
    reactor_->OnCancel();
    __tsan_release(call_);  // The library counts it among what comes before the end.
    delete this;
  }
  void OnDone() override {}
  bool InternalInlineable() override { return reactor_->InternalInlineable(); }

 private:
  ServerCallbackCall* const call_;
  ServerReactor* const reactor_;
};

}  // namespace

// The last of those that were waited for may have come within the library, which the sanitizer did
// not see: the counters are read once more, for what the others did before.
void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  static auto* const next = Next<void(ServerCallbackCall*, bool)>(
      "_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
  (void)callbacks_outstanding_.load(std::memory_order_acquire);
  __tsan_release(this);
  next(new Done(this), inline_ondone);
}

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  static auto* const next = Next<void(ServerCallbackCall*, ServerReactor*)>(
      "_ZN4grpc8internal18ServerCallbackCall12CallOnCancelEPNS0_13ServerReactorE");
  (void)on_cancel_conditions_remaining_.load(std::memory_order_acquire);
  __tsan_release(reactor);
  next(this, new Cancelled(this, reactor));
}

}  // namespace internal
}  // namespace grpc
