// The form of gRPC-Web messages in HTTP/1.1 bodies, as
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md describes it.
#ifndef PLUMBLINE_SERVER_HTTP_GRPC_WEB_H_
#define PLUMBLINE_SERVER_HTTP_GRPC_WEB_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/http_server.h"

namespace plumbline::server {

enum class GrpcWebForm { kBinary, kText };

// The form that a Content-Type header names: "application/grpc-web", "application/grpc-web-text",
// either with "+proto". Nothing for any other.
std::optional<GrpcWebForm> FormOfContentType(absl::string_view content_type);
// The Content-Type of an answer to a request of `form`.
absl::string_view ContentTypeOf(GrpcWebForm form);

// The one message of a request's body: a frame with its length, uncompressed. INVALID_ARGUMENT for
// a body of another form, and UNIMPLEMENTED for a compressed one.
absl::StatusOr<std::string> DecodeRequest(GrpcWebForm form, absl::string_view body);

// A frame of an answer.
std::string EncodeMessage(GrpcWebForm form, absl::string_view message);
// The last frame: the status with its details, and trailing metadata.
std::string EncodeTrailers(GrpcWebForm form, const absl::Status& status,
                           const HttpHeaders& metadata);

// A grpc-timeout header, e.g. "250m". Nothing for one of another form.
std::optional<absl::Duration> ParseGrpcTimeout(absl::string_view header);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_HTTP_GRPC_WEB_H_
