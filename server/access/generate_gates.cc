// Makes, from the `access` options of the API's methods, the gates of server/access/gates.h and the
// table of docs/access.md. Fails, naming it, if a method has none: it would not be guarded.
//   generate_gates header|table DESCRIPTOR_SET [METHOD...]
// The methods named are handed to their service as they came, without being decoded.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "proto/plumbline/v1/access.pb.h"

namespace plumbline::server {
namespace {

using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

using Services = std::vector<const ServiceDescriptor*>;

// Of our own package, in the order of the files and within them.
Services ServicesOf(const google::protobuf::FileDescriptorSet& files,
                    google::protobuf::DescriptorPool* pool) {
  Services services;
  for (const google::protobuf::FileDescriptorProto& file : files.file()) {
    const FileDescriptor* const built = pool->BuildFile(file);
    if (built == nullptr || built->package() != "plumbline.v1") continue;
    for (int i = 0; i < built->service_count(); ++i) services.push_back(built->service(i));
  }
  return services;
}

v1::Access AccessOf(const MethodDescriptor& method) {
  return method.options().GetExtension(v1::access);
}

std::string TypeOf(const google::protobuf::Descriptor& message) {
  return absl::StrCat("::", absl::StrReplaceAll(message.full_name(), {{".", "::"}}));
}

std::string RoleWord(int role) {
  return absl::AsciiStrToLower(
      absl::StripPrefix(v1::Role_Name(static_cast<v1::Role>(role)), "ROLE_"));
}

bool Check(const Services& services) {
  bool complete = true;
  for (const ServiceDescriptor* const service : services) {
    for (int i = 0; i < service->method_count(); ++i) {
      const v1::Access access = AccessOf(*service->method(i));
      const bool named = std::all_of(access.roles().begin(), access.roles().end(), [](int role) {
        return v1::Role_IsValid(role) && role != v1::ROLE_UNSPECIFIED;
      });
      if (access.roles_size() > 0 && named) continue;
      std::fprintf(stderr,
                   "%s: says not who may call it: option (access) = { roles: [ ... ] } in its "
                   ".proto file\n",
                   service->method(i)->full_name().c_str());
      complete = false;
    }
  }
  return complete;
}

std::string Rule(const MethodDescriptor& method) {
  const v1::Access access = AccessOf(method);
  std::vector<std::string> roles;
  for (const int role : access.roles()) {
    roles.push_back(absl::StrCat("v1::", v1::Role_Name(static_cast<v1::Role>(role))));
  }
  return absl::StrCat("{\"", method.full_name().substr(0, method.full_name().rfind('.')), "/",
                      method.name(), "\", \"", method.service()->name(), "/", method.name(),
                      "\", {", absl::StrJoin(roles, ", "), "}, ",
                      access.change() ? "true" : "false", "}");
}

// What the code of a gate says of a method.
struct MethodCode {
  explicit MethodCode(const MethodDescriptor& method, bool encoded) {
    request = encoded ? "grpc::ByteBuffer" : TypeOf(*method.input_type());
    response = encoded ? "grpc::ByteBuffer" : TypeOf(*method.output_type());
    if (method.client_streaming()) {
      reactor = absl::StrCat("grpc::ServerReadReactor<", request, ">");
      refused = absl::StrCat("RefusedReader<", request, ">");
      parameters = absl::StrCat(response, "* response");
      arguments = "response";
      return;
    }
    parameters = absl::StrCat("const ", request, "* request");
    arguments = "request";
    if (method.server_streaming()) {
      reactor = absl::StrCat("grpc::ServerWriteReactor<", response, ">");
      refused = absl::StrCat("RefusedWriter<", response, ">");
      handler = absl::StrCat("CallbackServerStreamingHandler<", request, ", ", response, ">");
      return;
    }
    reactor = "grpc::ServerUnaryReactor";
    refused = "RefusedCall";
    handler = absl::StrCat("CallbackUnaryHandler<", request, ", ", response, ">");
    absl::StrAppend(&parameters, ", ", response, "* response");
    absl::StrAppend(&arguments, ", response");
  }

  std::string request, response, reactor, refused;
  std::string parameters, arguments;  // Behind the context or the caller.
  std::string handler;                // Of gRPC; of client streams, which decode later, "".
};

// A method as gRPC calls it, final, and as the service implements it; `encoded`: without decoding
// its messages.
std::string Method(const MethodDescriptor& method, bool encoded) {
  const MethodCode code(method, encoded);
  const bool stream = method.client_streaming() || method.server_streaming();
  return absl::StrCat(
      "  ", code.reactor, "* ", method.name(), "(grpc::CallbackServerContext* context, ",
      code.parameters, ") final {\n    const MethodAccess& access = AccessOf", method.name(),
      "();\n    absl::StatusOr<Caller> caller = gatekeeper_->Admit(context, access, ",
      stream ? "true" : "false", ");\n    if (!caller.ok()) return new ", code.refused,
      "(gatekeeper_, access, caller.status());\n    return ", method.name(), "(*caller, ",
      code.arguments, ");\n  }\n  virtual ", code.reactor, "* ", method.name(),
      "(const Caller& caller, ", code.parameters, ") = 0;\n\n");
}

std::string AccessFunction(const MethodDescriptor& method) {
  return absl::StrCat("  static const MethodAccess& AccessOf", method.name(),
                      "() {\n    static const auto* const access = new MethodAccess(", Rule(method),
                      ");\n    return *access;\n  }\n");
}

// In the constructor: what becomes of requests that cannot be decoded. Who may not call is told
// that and no more.
std::string Registration(const MethodDescriptor& method, bool encoded) {
  const MethodCode code(method, encoded);
  if (encoded || code.handler.empty()) return "";
  const std::string open = absl::StrCat(
      "std::make_unique<grpc::internal::", code.handler,
      ">([this](grpc::CallbackServerContext* context, const ", code.request, "* request",
      method.server_streaming() ? "" : absl::StrCat(", ", code.response, "* response"), ")");
  return absl::StrCat(
      "    MarkMethodCallback(", method.index(), ", new DecodingHandler(\n        ", open,
      " { return ", method.name(), "(context, ", code.arguments, "); }),\n        ", open, " -> ",
      code.reactor, "* {\n          const MethodAccess& access = AccessOf", method.name(),
      "();\n          const absl::Status admitted = gatekeeper_->Admit(context, access, false)"
      ".status();\n          return new ",
      code.refused, "(gatekeeper_, access, admitted.ok() ? NoSuchMessage(\"",
      method.input_type()->full_name(), "\") : admitted);\n        })));\n");
}

// What else needs to know every service and method: the gRPC-Web bridge.
std::string ServiceList(const Services& services) {
  const std::string finds =
      absl::StrJoin(services, ",\n          ", [](std::string* out, const ServiceDescriptor* each) {
        absl::StrAppend(out, "pool->FindServiceByName(\"", each->full_name(), "\")");
      });
  return absl::StrCat(
      "// Every service that has a gate.\n"
      "inline std::vector<const google::protobuf::ServiceDescriptor*> GatedServices() {\n"
      "  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();\n"
      "  return {",
      finds, "};\n}\n\n");
}

std::string Header(const Services& services, const std::set<std::string>& encoded) {
  std::string text =
      "// Generated by server/access/generate_gates.cc from the API's `access` options.\n"
      "#ifndef PLUMBLINE_SERVER_ACCESS_GATES_H_\n#define PLUMBLINE_SERVER_ACCESS_GATES_H_\n\n"
      "#include <google/protobuf/descriptor.h>\n\n#include <vector>\n\n"
      "#include \"proto/plumbline/v1/admin_service.grpc.pb.h\"\n"
      "#include \"proto/plumbline/v1/job_service.grpc.pb.h\"\n"
      "#include \"proto/plumbline/v1/worker_service.grpc.pb.h\"\n"
      "#include \"server/access/gate.h\"\n\nnamespace plumbline::server {\n\n";
  for (const ServiceDescriptor* const service : services) {
    const std::string name = absl::StrCat(service->name(), "Gate");
    std::string base = absl::StrCat("v1::", service->name(), "::CallbackService");
    for (int i = 0; i < service->method_count(); ++i) {
      if (encoded.count(service->method(i)->full_name()) == 0) continue;
      base = absl::StrCat("v1::", service->name(), "::WithRawCallbackMethod_",
                          service->method(i)->name(), "<", base, ">");
    }
    absl::StrAppend(&text, "class ", name, " : public ", base, " {\n public:\n  explicit ", name,
                    "(Gatekeeper* gatekeeper) : gatekeeper_(gatekeeper) {\n");
    for (int i = 0; i < service->method_count(); ++i) {
      const MethodDescriptor& method = *service->method(i);
      absl::StrAppend(&text, Registration(method, encoded.count(method.full_name()) > 0));
    }
    absl::StrAppend(&text, "  }\n\n");
    for (int i = 0; i < service->method_count(); ++i) {
      const MethodDescriptor& method = *service->method(i);
      absl::StrAppend(&text, Method(method, encoded.count(method.full_name()) > 0));
    }
    absl::StrAppend(&text, " private:\n");
    for (int i = 0; i < service->method_count(); ++i) {
      absl::StrAppend(&text, AccessFunction(*service->method(i)));
    }
    absl::StrAppend(&text, "  Gatekeeper* const gatekeeper_;\n};\n\n");
  }
  absl::StrAppend(&text, ServiceList(services));
  return absl::StrCat(text, "}  // namespace plumbline::server\n\n#endif\n");
}

bool May(const v1::Access& access, v1::Role role) {
  return std::any_of(access.roles().begin(), access.roles().end(), [role](int each) {
    return role == v1::ROLE_ADMIN || each == role ||
           (each == v1::ROLE_VIEWER && role == v1::ROLE_SUBMITTER);
  });
}

std::string Table(const Services& services) {
  const std::vector<v1::Role> roles = {v1::ROLE_VIEWER, v1::ROLE_SUBMITTER, v1::ROLE_WORKER,
                                       v1::ROLE_ADMIN};
  std::string text = "| method |";
  for (const v1::Role role : roles) absl::StrAppend(&text, " ", RoleWord(role), " |");
  absl::StrAppend(&text, " in the audit log |\n|---|---|---|---|---|---|\n");
  for (const ServiceDescriptor* const service : services) {
    for (int i = 0; i < service->method_count(); ++i) {
      const MethodDescriptor& method = *service->method(i);
      absl::StrAppend(&text, "| ", service->name(), "/", method.name(), " |");
      for (const v1::Role role : roles) {
        absl::StrAppend(&text, May(AccessOf(method), role) ? " yes |" : "  |");
      }
      absl::StrAppend(&text, AccessOf(method).change() ? " yes |\n" : "  |\n");
    }
  }
  return text;
}

}  // namespace
}  // namespace plumbline::server

int main(int argc, char** argv) {
  using namespace plumbline::server;  // NOLINT
  const std::string what = argc >= 3 ? argv[1] : "";
  google::protobuf::FileDescriptorSet files;
  std::ifstream input(argc >= 3 ? argv[2] : "", std::ios::binary);
  if ((what != "header" && what != "table") || !files.ParseFromIstream(&input)) {
    std::fprintf(stderr, "use: generate_gates header|table DESCRIPTOR_SET [ENCODED METHOD...]\n");
    return 2;
  }
  std::set<std::string> encoded;
  for (int i = 3; i < argc; ++i) encoded.insert(argv[i]);
  google::protobuf::DescriptorPool pool;
  const Services services = ServicesOf(files, &pool);
  if (services.empty() || !Check(services)) return 1;
  const std::string text = what == "header" ? Header(services, encoded) : Table(services);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}
