#include "common/proto_json.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/type_resolver.h"
#include "google/protobuf/util/type_resolver_util.h"

namespace plumbline {
namespace {

constexpr char kTypePrefix[] = "type.googleapis.com";

google::protobuf::util::TypeResolver* Resolver() {
  static auto* const resolver = google::protobuf::util::NewTypeResolverForDescriptorPool(
      kTypePrefix, google::protobuf::DescriptorPool::generated_pool());
  return resolver;
}

}  // namespace

absl::StatusOr<std::string> ProtoJson(const google::protobuf::Message& message,
                                      const google::protobuf::util::JsonPrintOptions& options) {
  std::string binary;
  {
    google::protobuf::io::StringOutputStream stream(&binary);
    google::protobuf::io::CodedOutputStream coded(&stream);
    // Sorts maps, whose order the JSON follows.
    coded.SetSerializationDeterministic(true);
    message.SerializePartialToCodedStream(&coded);
  }
  std::string text;
  const auto status = google::protobuf::util::BinaryToJsonString(
      Resolver(), absl::StrCat(kTypePrefix, "/", message.GetDescriptor()->full_name()), binary,
      &text, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(message.GetTypeName(), ": ", std::string(status.message())));
  }
  return text;
}

}  // namespace plumbline
