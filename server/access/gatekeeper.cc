#include "server/access/gatekeeper.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/access/token.h"
#include "common/status.h"
#include "common/tls/certificates.h"

namespace plumbline::server {
namespace {

constexpr double kBurstSeconds = 10;
constexpr absl::string_view kNoToken =
    "the call has no token; accepted: --token-file=FILE with one that `plumbline token create` "
    "made";

absl::Status Unauthenticated(absl::string_view why) {
  return WithReason(absl::UnauthenticatedError(why), "UNAUTHENTICATED");
}

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

absl::Status Denied(absl::string_view what, const std::vector<v1::Role>& roles, v1::Role role) {
  return WithReason(
      absl::PermissionDeniedError(absl::StrCat(
          what, " needs role ",
          absl::StrJoin(roles, " or ",
                        [](std::string* out, v1::Role each) { *out += RoleName(each); }),
          ", not ", RoleName(role))),
      "PERMISSION_DENIED");
}

}  // namespace

// Counts a stream of a principal, and can be told to end, from construction to destruction.
class Gatekeeper::Stream final : public OpenStream {
 public:
  // `context` must outlive it.
  Stream(Gatekeeper* gatekeeper, const Principal& principal, grpc::CallbackServerContext* context)
      : gatekeeper_(gatekeeper), principal_(principal), context_(context) {
    gatekeeper_->Enter(this);
  }
  ~Stream() override { gatekeeper_->Leave(this); }

  absl::Status MayGoOn() const override {
    absl::MutexLock lock(&mutex_);
    return end_;
  }

  const Principal& principal() const { return principal_; }

  // Says that it ends with `end`; a second time, cancels it. Whether it was the first time.
  bool End(const absl::Status& end) {
    {
      absl::MutexLock lock(&mutex_);
      if (end_.ok()) {
        end_ = end;
        return true;
      }
    }
    context_->TryCancel();
    return false;
  }

 private:
  Gatekeeper* const gatekeeper_;
  const Principal principal_;
  grpc::CallbackServerContext* const context_;
  mutable absl::Mutex mutex_;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

Gatekeeper::Gatekeeper(Options options) : options_(std::move(options)), secret_(NewTokenSecret()) {}

std::string Gatekeeper::CertificateMetadata(absl::string_view common_name) const {
  // Metadata is printable ASCII; names need not be.
  return absl::StrCat(secret_, ".", absl::BytesToHexString(common_name));
}

absl::StatusOr<Principal> Gatekeeper::Identify(const grpc::CallbackServerContext& context) const {
  const auto& metadata = context.client_metadata();
  if (const auto header = metadata.find("authorization"); header != metadata.end()) {
    absl::string_view token = View(header->second);
    if (metadata.count("authorization") > 1 || !absl::ConsumePrefix(&token, "Bearer ")) {
      return Unauthenticated("the authorization metadata is not \"Bearer TOKEN\"");
    }
    return options_.authenticator->OfToken(token, options_.clock->Now());
  }
  if (const auto header = metadata.find(kCertificateMetadata); header != metadata.end()) {
    absl::string_view value = View(header->second);
    const std::string expected = absl::StrCat(secret_, ".");
    // In a time that does not tell how much of it was right.
    if (value.size() >= expected.size() &&
        CRYPTO_memcmp(value.data(), expected.data(), expected.size()) == 0) {
      return options_.authenticator->OfCertificate(
          absl::HexStringToBytes(value.substr(expected.size())), options_.clock->Now());
    }
    return Unauthenticated(kNoToken);
  }
  if (const auto peer = context.auth_context(); peer != nullptr && peer->IsPeerAuthenticated()) {
    // Not GRPC_X509_CN_PROPERTY_NAME, which is the first of several.
    const auto pem = peer->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
    const std::vector<Certificate> certificates =
        pem.size() == 1 ? ParseCertificates(std::string(View(pem[0]))) : std::vector<Certificate>();
    if (certificates.size() == 1) {
      if (const auto name = CommonNameOf(certificates[0].get()); name.has_value()) {
        return options_.authenticator->OfCertificate(*name, options_.clock->Now());
      }
      return Unauthenticated(
          "the call has no token, and its certificate has no, or several, names");
    }
  }
  return Unauthenticated(kNoToken);
}

absl::Status Gatekeeper::Charge(const Principal& principal, bool stream) {
  const PrincipalLimits& limits = options_.limits;
  const absl::Time now = options_.clock->Now();
  absl::MutexLock lock(&mutex_);
  const auto [entry, is_new] = accounts_.try_emplace(principal.name);
  Account& account = entry->second;
  if (limits.calls_per_second > 0) {
    const double most = std::max(1.0, limits.calls_per_second * kBurstSeconds);
    const double seconds = is_new ? kBurstSeconds : absl::ToDoubleSeconds(now - account.filled);
    account.calls =
        std::min(most, account.calls + std::max(0.0, seconds) * limits.calls_per_second);
    if (is_new) account.calls = most;
    account.filled = now;
    if (account.calls < 1) {
      return WithReason(absl::ResourceExhaustedError(
                            absl::StrCat(Quoted(principal.name), " makes too many calls: at most ",
                                         limits.calls_per_second, " a second")),
                        "RATE_LIMIT");
    }
    account.calls -= 1;
  }
  if (stream) {
    if (limits.streams > 0 && account.streams >= limits.streams) {
      return WithReason(
          absl::ResourceExhaustedError(absl::StrCat(
              Quoted(principal.name), " has too many streams open: at most ", limits.streams)),
          "QUOTA");
    }
    ++account.streams;
  }
  return absl::OkStatus();
}

void Gatekeeper::Enter(Stream* stream) {
  absl::MutexLock lock(&mutex_);
  streams_.insert(stream);
}

void Gatekeeper::Leave(Stream* stream) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(stream);
  --accounts_[stream->principal().name].streams;
}

void Gatekeeper::EndStreams() {
  if (options_.authenticator == nullptr) return;
  const absl::Time now = options_.clock->Now();
  bool any = false;
  {
    // None leaves meanwhile; gRPC tells streams that they were cancelled on threads of its own.
    absl::MutexLock lock(&mutex_);
    for (Stream* const stream : streams_) {
      const absl::Status good =
          options_.authenticator->Recheck(stream->principal().credential, now);
      if (!good.ok() && stream->End(good)) any = true;
    }
  }
  if (any && options_.on_ended_streams) options_.on_ended_streams();
}

absl::Status Gatekeeper::Recheck(const Caller& caller) const {
  if (options_.authenticator == nullptr) return absl::OkStatus();
  return options_.authenticator->Recheck(caller.credential, options_.clock->Now());
}

absl::StatusOr<Caller> Gatekeeper::Admit(grpc::CallbackServerContext* context,
                                         const MethodAccess& access, bool stream) {
  Caller caller;
  caller.method = access.method;
  if (options_.authenticator == nullptr) return caller;
  PLUMBLINE_ASSIGN_OR_RETURN(const Principal principal, Identify(*context));
  caller.authenticated = true;
  caller.principal = principal.name;
  caller.role = RoleName(principal.role);
  caller.credential = principal.credential;
  PLUMBLINE_RETURN_IF_ERROR(Charge(principal, stream));
  if (stream) caller.stream = std::make_shared<Stream>(this, principal, context);
  if (!RoleMay(principal.role, access.roles)) {
    const absl::Status denied = Denied(access.method, access.roles, principal.role);
    if (access.change && options_.on_denied_change) options_.on_denied_change(caller, denied);
    return denied;
  }
  return caller;
}

void Gatekeeper::RecordRefusal(const MethodAccess& access, const absl::Status& status) {
  if (options_.on_refused) options_.on_refused(access.metric_label, status);
}

bool RoleMay(v1::Role role, const std::vector<v1::Role>& roles) {
  return std::any_of(roles.begin(), roles.end(), [role](v1::Role each) {
    return role == v1::ROLE_ADMIN || each == role ||
           (each == v1::ROLE_VIEWER && role == v1::ROLE_SUBMITTER);
  });
}

absl::Status Gatekeeper::RequireAdmin(const Caller& caller, absl::string_view what) const {
  if (!caller.authenticated || caller.role == RoleName(v1::ROLE_ADMIN)) return absl::OkStatus();
  const absl::Status denied = WithReason(
      absl::PermissionDeniedError(absl::StrCat(what, " needs role admin, not ", caller.role)),
      "PERMISSION_DENIED");
  if (options_.on_denied_change) options_.on_denied_change(caller, denied);
  return denied;
}

}  // namespace plumbline::server
