// TLS and mutual TLS on both ports, and certificates that are replaced.
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/access/access_file.h"
#include "common/logging.h"
#include "server/testing/tls_fixture.h"

namespace plumbline::server {
namespace {

TEST_F(TlsTest, BothPortsSpeakTls) {
  StartServer();
  EXPECT_TRUE(List(Connect(authority_.certificate())).ok());
  EXPECT_EQ(List(Connect(authority_.certificate()), false).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  const TestAuthority stranger;
  EXPECT_EQ(List(Connect(stranger.certificate())).error_code(), grpc::StatusCode::UNAVAILABLE);
  const auto client = Https();
  EXPECT_EQ(client->Get("/healthz")->status, 200);
  EXPECT_TRUE(absl::StrContains(
      ListOverHttps(client.get(), {{"Authorization", "Bearer " + token_}}), "grpc-status: 0\r\n"));
  EXPECT_TRUE(absl::StrContains(ListOverHttps(client.get(), {}), "grpc-status: 16\r\n"));
}

TEST_F(TlsTest, OldVersionsAndCiphersWithoutForwardSecrecyAreRefused) {
  StartServer();
  const auto shakes_hands = [this](int version, const char* ciphers) {
    const auto client = Https();
    SSL_CTX_set_max_proto_version(client->ssl_context(), version);
    SSL_CTX_set_cipher_list(client->ssl_context(), ciphers);
    return static_cast<bool>(client->Get("/healthz"));
  };
  EXPECT_TRUE(shakes_hands(TLS1_3_VERSION, "DEFAULT"));
  EXPECT_TRUE(shakes_hands(TLS1_2_VERSION, "DEFAULT"));
  EXPECT_FALSE(shakes_hands(TLS1_1_VERSION, "DEFAULT:@SECLEVEL=0"));
  for (const char* const weak :
       {"AES128-SHA:@SECLEVEL=0", "AES256-GCM-SHA384",
        "ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES128-SHA", "aNULL:eNULL:@SECLEVEL=0"}) {
    EXPECT_FALSE(shakes_hands(TLS1_2_VERSION, weak)) << weak;
  }
}

TEST_F(TlsTest, APlainTextClientGetsNothingOfAnyMethod) {
  StartServer();
  grpc::GenericStub stub(grpc::CreateChannel(absl::StrCat("127.0.0.1:", grpc_port_),
                                             grpc::InsecureChannelCredentials()));
  for (const auto* file :
       {v1::GetJobRequest::descriptor()->file(), v1::GetWorkerRequest::descriptor()->file(),
        v1::RegisterWorkerRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const auto* method = file->service(i)->method(j);
        grpc::ClientContext context;
        SetDeadline(&context);
        context.AddMetadata("authorization", "Bearer " + token_);
        grpc::CompletionQueue queue;
        const grpc::ByteBuffer empty;
        const auto call = stub.PrepareUnaryCall(
            &context, absl::StrCat("/", method->service()->full_name(), "/", method->name()), empty,
            &queue);
        call->StartCall();
        grpc::ByteBuffer answer;
        grpc::Status status;
        call->Finish(&answer, &status, nullptr);
        void* tag = nullptr;
        bool ok = false;
        ASSERT_TRUE(queue.Next(&tag, &ok));
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << method->full_name();
        queue.Shutdown();
      }
    }
  }
  httplib::Client http("localhost", http_port_);
  EXPECT_FALSE(http.Get("/healthz"));
}

TEST_F(TlsTest, MutualTlsWantsACertificateAndKnowsItsName) {
  RequireClientCertificates();
  StartServer();
  const std::string& ca = authority_.certificate();
  EXPECT_EQ(List(Connect(ca)).error_code(), grpc::StatusCode::UNAVAILABLE);
  TestAuthority stranger;
  EXPECT_EQ(List(Connect(ca, stranger.Issue("node-1"))).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  // One that is known has its role; one that is not has none.
  const TestCertificate node = authority_.Issue("node-1");
  EXPECT_EQ(List(Connect(ca, node), false).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(List(Connect(ca, authority_.Issue("node-2")), false).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(List(Connect(ca, node)).ok());
  EXPECT_FALSE(Https()->Get("/healthz"));
  EXPECT_TRUE(absl::StrContains(ListOverHttps(Https(node).get(), {}), "grpc-status: 7\r\n"));
  EXPECT_TRUE(absl::StrContains(ListOverHttps(Https(authority_.Issue("node-2")).get(), {}),
                                "grpc-status: 16\r\n"));
  EXPECT_FALSE(Https(stranger.Issue("node-1"))->Get("/healthz"));
}

TEST_F(TlsTest, ACertificateHasTheSameNameOnBothPorts) {
  AccessFile access = LoadAccessFile(options_.access_file).value();
  AccessEntry other;
  other.name = "umlaut";
  other.role = v1::ROLE_WORKER;
  other.certificate = "M\xc3\xbcller 7";
  ASSERT_TRUE(AddAccess(other, &access).ok());
  ASSERT_TRUE(SaveAccessFile(options_.access_file, access).ok());
  RequireClientCertificates();
  StartServer();
  const struct {
    std::vector<std::string> common_names;
    grpc::StatusCode code;
  } cases[] = {
      {{"node-1"}, grpc::StatusCode::PERMISSION_DENIED},
      {{other.certificate}, grpc::StatusCode::PERMISSION_DENIED},
      {{"node-1", "node-2"}, grpc::StatusCode::UNAUTHENTICATED},
      {{"node-2", "node-1"}, grpc::StatusCode::UNAUTHENTICATED},
      {{"node-1", "node-1"}, grpc::StatusCode::UNAUTHENTICATED},
      {{std::string("node-1\0.example", 14)}, grpc::StatusCode::UNAUTHENTICATED},
      {{"node-1\n"}, grpc::StatusCode::UNAUTHENTICATED},
      {{}, grpc::StatusCode::UNAUTHENTICATED},
  };
  for (const auto& each : cases) {
    TestSubject subject;
    subject.common_names = each.common_names;
    const TestCertificate client = authority_.Issue(subject);
    const std::string names = absl::CEscape(absl::StrJoin(each.common_names, " and "));
    EXPECT_EQ(List(Connect(authority_.certificate(), client), false).error_code(), each.code)
        << names;
    EXPECT_TRUE(absl::StrContains(ListOverHttps(Https(client).get(), {}),
                                  absl::StrCat("grpc-status: ", each.code, "\r\n")))
        << names;
  }
}

TEST_F(TlsTest, EveryStrongKeyIsServedOnBothPorts) {
  StartServer();
  long serial = SerialPresented(grpc_port_);
  for (const char* const key : {"RSA-2048", "P-384", "P-521", "ED25519"}) {
    TestSubject subject;
    subject.key = key;
    Install(authority_.Issue(subject));
    ++serial;
    const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
    while ((SerialPresented(grpc_port_) != serial || SerialPresented(http_port_) != serial) &&
           SystemClock()->Now() < end) {
    }
    EXPECT_TRUE(List(Connect(authority_.certificate())).ok()) << key;
    EXPECT_TRUE(Https()->Get("/healthz")) << key;
  }
}

TEST_F(TlsTest, AWeakKeyIsRefusedAtTheStartAndNotUsedWhenItComesLater) {
  TestSubject subject;
  subject.common_names = {"server"};
  subject.key = "RSA-1024";
  const TestCertificate weak = authority_.Issue(subject);
  Install(weak);
  EXPECT_EQ(Coordinator::Start(options_).status().message(),
            absl::StrCat("tls-cert: the certificate of CN=server in ", options_.tls.certificate,
                         " has an RSA key of 1024 bits; accepted: RSA of 2048 to 16384 bits, EC "
                         "on P-256, P-384 or P-521, or Ed25519"));
  Install(authority_.Issue("server"));
  std::FILE* const log = std::tmpfile();
  LogOptions logging;
  logging.file = log;
  ConfigureLogging(logging);
  StartServer();
  const long serial = SerialPresented(grpc_port_);
  Install(weak);
  const auto logged = [log] {
    std::string text;
    std::rewind(log);
    for (int c = std::fgetc(log); c != EOF; c = std::fgetc(log)) text += static_cast<char>(c);
    return text;
  };
  constexpr char kLine[] = "files cannot be reloaded; those read before stay in use";
  const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
  while (!absl::StrContains(logged(), "RSA key of 1024 bits") && SystemClock()->Now() < end) {
  }
  const std::string text = logged();
  EXPECT_TRUE(absl::StrContains(text, kLine)) << text;
  EXPECT_TRUE(absl::StrContains(text, "RSA key of 1024 bits")) << text;
  EXPECT_EQ(SerialPresented(grpc_port_), serial);
  EXPECT_EQ(SerialPresented(http_port_), serial);
  EXPECT_TRUE(List(Connect(authority_.certificate())).ok());
  ConfigureLogging({});
  std::fclose(log);
}

TEST_F(TlsTest, CertificatesAreReplacedUnderLoadAndNoRequestFails) {
  StartServer();
  std::atomic<bool> ending{false};
  std::atomic<int> calls{0};
  std::atomic<int> failures{0};
  Write(base_ + "roots.pem", authority_.certificate());
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      // One connection goes on; with each call another is made.
      const auto kept = Connect(authority_.certificate());
      while (!ending) {
        if (!List(kept).ok()) ++failures;
        if (!List(Connect(authority_.certificate())).ok()) ++failures;
        calls += 2;
      }
    });
    threads.emplace_back([&] {
      while (!ending) {
        httplib::SSLClient client("localhost", http_port_);
        client.set_ca_cert_path((base_ + "roots.pem").c_str());
        client.enable_server_certificate_verification(true);
        for (int j = 0; j < 3; ++j) {
          const auto result = client.Get("/healthz");
          if (!result || result->status != 200) ++failures;
          ++calls;
        }
      }
    });
  }
  for (long serial = 3; serial < 9; ++serial) {
    const TestCertificate next = authority_.Issue("server");
    if (serial % 2 == 0) {
      Install(next);
    } else {
      // The other way round, and not at once: for some time the two do not fit together.
      Write(options_.tls.key, next.key);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      Write(options_.tls.certificate, next.certificate);
    }
    const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
    while ((SerialPresented(grpc_port_) != serial || SerialPresented(http_port_) != serial) &&
           SystemClock()->Now() < end) {
    }
    EXPECT_EQ(SerialPresented(grpc_port_), serial);
    EXPECT_EQ(SerialPresented(http_port_), serial);
  }
  // Enough to have met each of them, however busy the machine is.
  const absl::Time end = SystemClock()->Now() + absl::Minutes(1);
  while (calls <= 50 && SystemClock()->Now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ending = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0) << "of " << calls;
  EXPECT_GT(calls, 50);
}

TEST_F(TlsTest, BadConfigurationsRefuseToStartWithOneClearLine) {
  const absl::Time now = SystemClock()->Now();
  const TestCertificate good = authority_.Issue("server");
  const auto refusal = [this] {
    const absl::Status status = Coordinator::Start(options_).status();
    EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  Install({good.certificate, authority_.Issue("server").key});
  EXPECT_TRUE(absl::StrContains(refusal(), "is not the key of the certificate"));
  Install({"", good.key});
  EXPECT_TRUE(absl::StrContains(refusal(), "holds no certificate"));
  // Nobody is asked for a passphrase, which would be waited for without end.
  std::string locked = good.certificate;
  locked.insert(
      locked.find('\n') + 1,
      "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n");
  Install({locked, good.key});
  EXPECT_TRUE(absl::StrContains(refusal(), "holds no certificate"));
  // Nor is a chain used of which a part cannot be read.
  Install({good.certificate + locked, good.key});
  EXPECT_TRUE(absl::StrContains(refusal(), "holds no certificate"));
  Install({good.certificate, "nonsense"});
  EXPECT_TRUE(absl::StrContains(refusal(), "holds no private key"));
  Install(authority_.Issue("server", now - absl::Hours(2), now - absl::Hours(1)));
  EXPECT_TRUE(absl::StrContains(refusal(), "has expired"));
  Install(authority_.Issue("server", now + absl::Hours(1), now + absl::Hours(2)));
  EXPECT_TRUE(absl::StrContains(refusal(), "is not valid yet"));
  Install(good);
  const CoordinatorOptions complete = options_;
  options_.tls.client_ca = options_.tls.key;
  EXPECT_TRUE(absl::StrContains(refusal(), "tls-client-ca"));
  options_ = complete;
  options_.tls.key = "";
  EXPECT_TRUE(absl::StrContains(refusal(), "tls-key"));
  options_ = complete;
  options_.tls.certificate = "";
  EXPECT_TRUE(absl::StrContains(refusal(), "tls-cert"));
  options_ = complete;
  options_.tls.certificate += ".none";
  EXPECT_TRUE(absl::StrContains(refusal(), "tls-cert"));
  // Other machines need both.
  for (const bool with_tls : {false, true}) {
    options_ = complete;
    options_.listen = {"0.0.0.0:0"};
    if (with_tls) {
      options_.access_file = "";
    } else {
      options_.tls = {};
    }
    const std::string message = refusal();
    EXPECT_TRUE(absl::StrContains(message, "--tls-cert") &&
                absl::StrContains(message, "--access-file"))
        << message;
  }
  EXPECT_FALSE(std::filesystem::exists(options_.data_dir));
  options_ = complete;
  options_.listen = {"0.0.0.0:0"};
  options_.http = "0.0.0.0:0";
  StartServer();
  EXPECT_TRUE(List(Connect(authority_.certificate())).ok());
}

}  // namespace
}  // namespace plumbline::server
