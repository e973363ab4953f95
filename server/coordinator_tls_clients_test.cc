// What clients of a coordinator with TLS show it, and what they can tell of a connection that
// fails.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/access/client_channel.h"
#include "server/testing/tls_fixture.h"

namespace plumbline::server {
namespace {

// What clients say is wrong with the files or the server; "": nothing.
std::string Reason(const std::string& server, const ClientFiles& files) {
  const absl::StatusOr<ClientChannels> channels = ClientChannels::Load(server, files);
  EXPECT_TRUE(channels.ok()) << channels.status();
  if (!channels.ok()) return "";
  const absl::Status status = channels->WhyNotConnected();
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

// The same where something is: asked again while a busy machine answers too late.
std::string AwaitReason(const std::string& server, const ClientFiles& files) {
  const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
  std::string reason;
  while (reason.empty() && SystemClock()->Now() < end) reason = Reason(server, files);
  return reason;
}

TEST_F(TlsTest, ClientsCanTellWhyThereIsNoConnection) {
  StartServer();
  ClientFiles files;
  files.ca = base_ + "roots.pem";
  Write(files.ca, authority_.certificate());
  const std::string server = absl::StrCat("localhost:", grpc_port_);
  const std::string http = absl::StrCat("localhost:", http_port_);
  EXPECT_EQ(Reason(server, files), "");
  EXPECT_EQ(Reason("localhost:1", files), "");
  // Without a name server nobody says that there is no such name.
  const std::string unknown = Reason("no-such-host.invalid:1", files);
  EXPECT_TRUE(unknown.empty() ||
              absl::StartsWith(unknown, "--server: nobody knows the name \"no-such-host.invalid\""))
      << unknown;
  // Plain text to TLS, and the other port, either way.
  EXPECT_EQ(AwaitReason(server, {}), absl::StrCat("--ca: missing: ", server,
                                                  " speaks TLS; accepted: --ca=FILE, the PEM "
                                                  "file of whoever signed its certificate"));
  EXPECT_TRUE(absl::StartsWith(AwaitReason(http, files), "--server: "));
  EXPECT_TRUE(absl::StartsWith(AwaitReason(http, {}), "--ca: missing"));
  // Another authority.
  const TestAuthority stranger;
  ClientFiles wrong = files;
  wrong.ca = base_ + "stranger.pem";
  Write(wrong.ca, stranger.certificate());
  const std::string untrusted = AwaitReason(server, wrong);
  EXPECT_TRUE(absl::StartsWith(
      untrusted, absl::StrCat("--ca: the certificate that ", server,
                              " shows (CN=server, signed by CN=Test authority) is not trusted by ",
                              wrong.ca, ": ")))
      << untrusted;
  EXPECT_TRUE(absl::EndsWith(
      untrusted, "; accepted: --ca=FILE, the PEM file of whoever signed its certificate"));
  // Another host. (SetUp's certificates are for localhost.)
  TestSubject elsewhere;
  elsewhere.common_names = {"server"};
  elsewhere.alternative_names = "DNS:head.example,DNS:*.cluster.example,IP:192.0.2.1";
  Install(authority_.Issue(elsewhere));
  const std::string other_host = AwaitReason(server, files);
  EXPECT_TRUE(absl::EndsWith(other_host,
                             "is not for \"localhost\"; accepted: a name that it is for: "
                             "head.example, *.cluster.example, 192.0.2.1"))
      << other_host;
  EXPECT_TRUE(absl::StartsWith(other_host, "--server: ")) << other_host;
  EXPECT_TRUE(absl::StrContains(AwaitReason(absl::StrCat("127.0.0.1:", grpc_port_), files),
                                "is not for \"127.0.0.1\""));
}

TEST_F(TlsTest, ClientsCanTellThatTheirCertificateIsAtFault) {
  RequireClientCertificates();
  StartServer();
  const std::string server = absl::StrCat("localhost:", grpc_port_);
  ClientFiles files;
  files.ca = options_.tls.client_ca;
  EXPECT_TRUE(
      absl::StartsWith(AwaitReason(server, files), absl::StrCat("--cert: missing: ", server)));
  files.cert = base_ + "own.pem";
  files.key = base_ + "own.key";
  const auto show = [&](const TestCertificate& own) {
    Write(files.cert, own.certificate);
    Write(files.key, own.key);
  };
  show(authority_.Issue("node-1"));
  EXPECT_EQ(Reason(server, files), "");
  TestAuthority stranger;
  show(stranger.Issue("node-1"));
  const std::string untrusted = AwaitReason(server, files);
  EXPECT_TRUE(absl::StartsWith(
      untrusted,
      absl::StrCat("--cert: ", server, " does not take the certificate in ", files.cert, ";")))
      << untrusted;
  // What can be told without the server is told before.
  TestSubject weak;
  weak.key = "RSA-1024";
  show(authority_.Issue(weak));
  EXPECT_TRUE(absl::StrContains(ClientChannels::Load(server, files).status().message(),
                                "an RSA key of 1024 bits"));
  show({authority_.Issue("a").certificate, authority_.Issue("b").key});
  EXPECT_TRUE(absl::StrContains(ClientChannels::Load(server, files).status().message(), "--key: "));
}

TEST_F(TlsTest, ClientsCanTellThatThereIsNoTls) {
  options_.tls = {};
  StartServer();
  ClientFiles files;
  files.ca = base_ + "roots.pem";
  Write(files.ca, authority_.certificate());
  const std::string grpc = absl::StrCat("localhost:", grpc_port_);
  const std::string http = absl::StrCat("localhost:", http_port_);
  EXPECT_EQ(Reason(grpc, {}), "");
  for (const std::string& server : {grpc, http}) {
    EXPECT_EQ(AwaitReason(server, files),
              absl::StrCat("--ca: ", server,
                           " does not speak TLS; accepted: none of --ca, --cert "
                           "and --key; or the address of a server with TLS"));
  }
  EXPECT_EQ(AwaitReason(http, {}),
            absl::StrCat("--server: ", http,
                         " is the server's HTTP port, not gRPC's; accepted: "
                         "HOST:PORT of the server's --listen, e.g. HOST:7433"));
}

TEST_F(TlsTest, ClientsShowWhatTheirFilesHoldNow) {
  RequireClientCertificates();
  StartServer();
  const std::string server = absl::StrCat("localhost:", grpc_port_);
  ClientFiles files;
  files.ca = base_ + "ca.pem";
  files.cert = base_ + "client.pem";
  files.key = base_ + "client.key";
  files.token_file = base_ + "token";
  const auto show = [&](const TestCertificate& certificate) {
    Write(files.cert, certificate.certificate);
    Write(files.key, certificate.key);
  };
  show(authority_.Issue("anybody"));
  Write(files.token_file, token_ + "\n");
  const ClientChannels channels = ClientChannels::Load(server, files).value();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel = channels.Connect(arguments);
  EXPECT_TRUE(List(channel, /*with_token=*/false).ok());
  // The next call has the token that is there now.
  Write(files.token_file, "plumbline_0123456789_nonsense");
  const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
  grpc::Status status;
  while (status.ok() && SystemClock()->Now() < end) status = List(channel, false);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  // So has the next connection the certificate.
  files.token_file = "";
  const ClientChannels without_token = ClientChannels::Load(server, files).value();
  EXPECT_EQ(List(without_token.Connect(arguments), false).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  show(authority_.Issue("node-1"));
  do {
    status = List(without_token.Connect(arguments), false);
  } while (status.error_code() != grpc::StatusCode::PERMISSION_DENIED &&
           SystemClock()->Now() < end);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);

  const auto refusal = [](const std::string& to, const ClientFiles& shown) {
    return std::string(ClientChannels::Load(to, shown).status().message());
  };
  ClientFiles bad;
  bad.token_file = base_ + "token";
  EXPECT_TRUE(absl::StrContains(refusal("example.com:1", bad), "only under TLS"));
  EXPECT_TRUE(absl::StrContains(refusal("127.example.com:1", bad), "only under TLS"));
  EXPECT_TRUE(ClientChannels::Load("127.0.0.1:1", bad).ok());
  bad.token_file = base_ + "none";
  EXPECT_TRUE(absl::StrContains(refusal("127.0.0.1:1", bad), "--token-file"));
  bad = ClientFiles();
  bad.cert = files.cert;
  EXPECT_TRUE(absl::StrContains(refusal(server, bad), "--key"));
  bad = ClientFiles();
  bad.ca = base_ + "token";
  EXPECT_TRUE(absl::StrContains(refusal(server, bad), "--ca"));
}

}  // namespace
}  // namespace plumbline::server
