#include "server/http/grpc_web_bridge.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/clock.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "server/access/gatekeeper.h"
#include "server/http/grpc_web.h"

namespace plumbline::server {
namespace {

// Of a call's path and metadata. gRPC takes 8 KiB of all headers, its own among them; more would
// break the channel that all callers share.
constexpr size_t kMaxMetadataBytes = 4 << 10;

// As HTTP/2 counts a header, RFC 9113, 6.5.2.
size_t HeaderBytes(absl::string_view name, absl::string_view value) {
  return name.size() + value.size() + 32;
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

HttpHeaders HeadersOf(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  HttpHeaders headers;
  for (const auto& [name, value] : metadata) {
    // The status has its own place.
    if (absl::StartsWith(absl::string_view(name.data(), name.size()), "grpc-")) continue;
    headers.emplace_back(std::string(name.data(), name.size()),
                         std::string(value.data(), value.size()));
  }
  return headers;
}

// The head of every answer: what went wrong is in the trailers.
void StartAnswer(GrpcWebForm form, HttpHeaders headers, HttpStream* stream) {
  headers.emplace_back("Content-Type", std::string(ContentTypeOf(form)));
  headers.emplace_back("Cache-Control", "no-store");
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  stream->Start(200, headers);
}

void EndAnswer(GrpcWebForm form, const absl::Status& status, const HttpHeaders& metadata,
               const std::shared_ptr<HttpStream>& stream) {
  stream->Write(EncodeTrailers(form, status, metadata), [stream](bool) { stream->Finish(); });
}

// One call. Deletes itself when gRPC is done with it.
class BridgeCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // `channels` must outlive the call: the HTTP server ends after all of its streams.
  BridgeCall(LocalChannel* channels, std::shared_ptr<grpc::Channel> channel, GrpcWebForm form,
             const std::string& message, std::shared_ptr<HttpStream> stream)
      : channels_(channels),
        channel_(std::move(channel)),
        form_(form),
        request_(BufferOf(message)),
        stream_(std::move(stream)) {}

  grpc::ClientContext* context() { return &context_; }

  void Start(const std::string& method) {
    grpc::GenericStub(channel_).PrepareBidiStreamingCall(&context_, method, grpc::StubOptions(),
                                                         this);
    // Until the last message was read: reads are started from the HTTP server's threads.
    AddHold();
    StartWriteLast(&request_, grpc::WriteOptions());
    stream_->OnceLeft([leaver = leaver_] { leaver->Leave(); });
    StartCall();
  }

  void OnReadInitialMetadataDone(bool ok) override {
    started_ = true;
    StartAnswer(form_, HeadersOf(context_.GetServerInitialMetadata()), stream_.get());
    ok ? StartRead(&response_) : RemoveHold();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      RemoveHold();
      return;
    }
    std::string frame = EncodeMessage(form_, BytesOf(response_));
    response_.Clear();
    stream_->Write(std::move(frame), [this](bool taken) {
      if (taken) {
        StartRead(&response_);
      } else {
        context_.TryCancel();
        RemoveHold();
      }
    });
  }

  void OnDone(const grpc::Status& status) override {
    leaver_->Forget();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) channels_->Renew(channel_);
    if (!started_) StartAnswer(form_, {}, stream_.get());
    EndAnswer(form_, FromGrpcStatus(status), HeadersOf(context_.GetServerTrailingMetadata()),
              stream_);
    delete this;
  }

 private:
  // Cancels the call, as long as there is one, from whichever thread learns that the client left.
  class Leaver {
   public:
    explicit Leaver(grpc::ClientContext* context) : context_(context) {}
    void Leave() {
      absl::MutexLock lock(&mutex_);
      if (context_ != nullptr) context_->TryCancel();
    }
    void Forget() {
      absl::MutexLock lock(&mutex_);
      context_ = nullptr;
    }

   private:
    absl::Mutex mutex_;
    grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_);
  };

  LocalChannel* const channels_;
  const std::shared_ptr<grpc::Channel> channel_;
  const GrpcWebForm form_;
  const grpc::ByteBuffer request_;
  const std::shared_ptr<HttpStream> stream_;
  grpc::ClientContext context_;
  const std::shared_ptr<Leaver> leaver_ = std::make_shared<Leaver>(&context_);
  grpc::ByteBuffer response_;
  bool started_ = false;
};

void Refuse(GrpcWebForm form, const absl::Status& status,
            const std::shared_ptr<HttpStream>& stream) {
  StartAnswer(form, {}, stream.get());
  EndAnswer(form, status, {}, stream);
}

}  // namespace

void GrpcWebBridge::AddService(const google::protobuf::ServiceDescriptor* service,
                               HttpServer* server) {
  server->HandleStream("POST", absl::StrCat("/", service->full_name(), "/*"),
                       [this, service](HttpRequest request, std::shared_ptr<HttpStream> stream) {
                         Handle(*service, std::move(request), std::move(stream));
                       });
}

void GrpcWebBridge::Handle(const google::protobuf::ServiceDescriptor& service, HttpRequest request,
                           std::shared_ptr<HttpStream> stream) const {
  const std::optional<GrpcWebForm> form = FormOfContentType(request.headers["content-type"]);
  if (!form.has_value()) {
    stream->Start(415, {{"Content-Type", "text/plain; charset=utf-8"},
                        {"Accept-Post", "application/grpc-web, application/grpc-web-text"}});
    stream->Write("the content type must be application/grpc-web or application/grpc-web-text\n",
                  [stream](bool) { stream->Finish(); });
    return;
  }
  if (service.FindMethodByName(request.rest) == nullptr) {
    Refuse(*form,
           WithReason(absl::UnimplementedError(absl::StrCat(service.full_name(), " has no method ",
                                                            Quoted(request.rest))),
                      "UNIMPLEMENTED"),
           stream);
    return;
  }
  absl::StatusOr<std::string> message = DecodeRequest(*form, request.body);
  if (!message.ok()) {
    Refuse(*form, message.status(), stream);
    return;
  }
  std::optional<absl::Duration> timeout;
  if (const auto header = request.headers.find("grpc-timeout"); header != request.headers.end()) {
    timeout = ParseGrpcTimeout(header->second);
    if (!timeout.has_value()) {
      Refuse(*form,
             FieldError("grpc-timeout", absl::StrCat(Quoted(header->second), " is no duration"),
                        "1 to 8 digits and one of H, M, S, m, u, n"),
             stream);
      return;
    }
  }
  const std::string& token = request.headers["authorization"];
  // gRPC ends the process over what is no metadata.
  if (!std::all_of(token.begin(), token.end(), absl::ascii_isprint)) {
    Refuse(
        *form,
        WithReason(absl::UnauthenticatedError("the authorization metadata is not \"Bearer TOKEN\""),
                   "UNAUTHENTICATED"),
        stream);
    return;
  }
  const std::string certificate =
      request.client_certificate.empty() ? "" : certificate_metadata_(request.client_certificate);
  const size_t metadata_bytes = HeaderBytes(":path", request.path) +
                                HeaderBytes("authorization", token) +
                                HeaderBytes(Gatekeeper::kCertificateMetadata, certificate);
  if (metadata_bytes > kMaxMetadataBytes) {
    Refuse(*form,
           FieldError("metadata",
                      absl::StrCat("path, authorization and certificate have ", metadata_bytes,
                                   " bytes together"),
                      absl::StrCat("at most ", kMaxMetadataBytes,
                                   " bytes of names and values, with 32 more for each")),
           stream);
    return;
  }
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = channel_->Get();
  if (!channel.ok()) {
    Refuse(*form, channel.status(), stream);
    return;
  }
  auto* const call =
      new BridgeCall(channel_.get(), *std::move(channel), *form, *message, std::move(stream));
  // gRPC goes by the machine's own clock.
  if (timeout.has_value()) {
    call->context()->set_deadline(absl::ToChronoTime(SystemClock()->Now() + *timeout));
  }
  if (!token.empty()) call->context()->AddMetadata("authorization", token);
  if (!certificate.empty()) {
    call->context()->AddMetadata(Gatekeeper::kCertificateMetadata, certificate);
  }
  call->Start(request.path);
}

}  // namespace plumbline::server
