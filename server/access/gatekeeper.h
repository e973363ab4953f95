#ifndef PLUMBLINE_SERVER_ACCESS_GATEKEEPER_H_
#define PLUMBLINE_SERVER_ACCESS_GATEKEEPER_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "proto/plumbline/v1/access.pb.h"
#include "server/access/authenticator.h"
#include "server/caller.h"

namespace grpc {
class CallbackServerContext;
}  // namespace grpc

namespace plumbline::server {

// Who may call a method.
struct MethodAccess {
  std::string method;        // "plumbline.v1.SERVICE/METHOD".
  std::string metric_label;  // "SERVICE/METHOD".
  std::vector<v1::Role> roles;
  bool change = false;
};

// What one principal may have. 0: without limit.
struct PrincipalLimits {
  // Calls a second over a longer time; ten times as many at once.
  double calls_per_second = 1000;
  int streams = 1000;
  // Announced for uploads that are not finished, together.
  int64_t open_upload_bytes = int64_t{1} << 40;
};

// Lets calls in, or not: who makes it, whether the role may, and whether it is too much. Any thread
// may call.
class Gatekeeper {
 public:
  struct Options {
    Clock* clock = nullptr;
    // Null: no authentication, and everybody may everything.
    const Authenticator* authenticator = nullptr;
    PrincipalLimits limits;
    // Told of every call that was not let in, by the label of its method.
    std::function<void(absl::string_view method, const absl::Status&)> on_refused;
    // Told of every change that a principal tried without the role for it.
    std::function<void(const Caller&, const absl::Status&)> on_denied_change;
    // Told when streams are to end.
    std::function<void()> on_ended_streams;
  };

  explicit Gatekeeper(Options options);

  // Who calls. UNAUTHENTICATED without a valid token or certificate; PERMISSION_DENIED naming the
  // roles that may; RESOURCE_EXHAUSTED, reason RATE_LIMIT or QUOTA, above the limits. The caller of
  // a `stream` counts as one until the last copy of it is gone.
  absl::StatusOr<Caller> Admit(grpc::CallbackServerContext* context, const MethodAccess& access,
                               bool stream);
  // UNAUTHENTICATED if who was let in may call no more: the token was revoked, or has expired.
  absl::Status Recheck(const Caller& caller) const;
  // Ends the streams of those: first `on_ended_streams` is told, so that streams which ask
  // Caller::stream end with the reason; what is still open at the next call is cancelled.
  void EndStreams();
  // PERMISSION_DENIED, which counts as a change that was denied, unless `caller` is an admin or
  // there is no authentication. `what`: for the message, e.g. "uploading a plug-in".
  absl::Status RequireAdmin(const Caller& caller, absl::string_view what) const;
  void RecordRefusal(const MethodAccess& access, const absl::Status& status);

  // What the HTTP port puts into a call that it makes for a client with a certificate. A secret of
  // this process, so that nobody else can say so.
  static constexpr char kCertificateMetadata[] = "plumbline-certificate";
  std::string CertificateMetadata(absl::string_view common_name) const;

 private:
  struct Account {
    double calls = 0;  // That may still be made.
    absl::Time filled;
    int streams = 0;
  };
  class Stream;

  absl::StatusOr<Principal> Identify(const grpc::CallbackServerContext& context) const;
  absl::Status Charge(const Principal& principal, bool stream);
  void Enter(Stream* stream);
  void Leave(Stream* stream);

  const Options options_;
  const std::string secret_;
  absl::Mutex mutex_;
  // By principal: no more than there are tokens and certificates.
  std::map<std::string, Account> accounts_ ABSL_GUARDED_BY(mutex_);
  std::set<Stream*> streams_ ABSL_GUARDED_BY(mutex_);  // That are open.
};

// Whether a caller of `role` may what needs one of `roles`.
bool RoleMay(v1::Role role, const std::vector<v1::Role>& roles);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_ACCESS_GATEKEEPER_H_
