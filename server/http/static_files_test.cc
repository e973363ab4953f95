#include "server/http/static_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace plumbline::server {
namespace {

std::string HeaderOf(const HttpResponse& response, const std::string& name) {
  for (const auto& [header, value] : response.headers) {
    if (header == name) return value;
  }
  return "";
}

HttpResponse Get(const StaticFiles& files, const std::string& path,
                 std::map<std::string, std::string> headers = {}) {
  HttpRequest request;
  request.path = path;
  request.headers = std::move(headers);
  return files.Serve(request);
}

TEST(StaticFilesTest, PathsAndTypes) {
  const StaticFiles files(
      {{"index.html", "<html>"}, {"assets/index-1.js", "js"}, {"favicon.svg", "svg"}});
  EXPECT_EQ(Get(files, "/").body, "<html>");
  EXPECT_EQ(Get(files, "/").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(Get(files, "/jobs/7").body, "<html>");
  EXPECT_EQ(Get(files, "/assets/index-1.js").body, "js");
  EXPECT_EQ(Get(files, "/assets/index-1.js").content_type, "text/javascript; charset=utf-8");
  for (const char* missing : {"/assets/index-2.js", "/x.html", "/../index.html.x", "/.."}) {
    EXPECT_EQ(Get(files, missing).status, 404) << missing;
  }
}

TEST(StaticFilesTest, CachingAndPolicy) {
  const StaticFiles files({{"index.html", "<html>"}, {"assets/index-1.js", "js"}});
  const HttpResponse page = Get(files, "/");
  EXPECT_EQ(HeaderOf(page, "Cache-Control"), "no-cache");
  EXPECT_EQ(HeaderOf(Get(files, "/assets/index-1.js"), "Cache-Control"),
            "public, max-age=31536000, immutable");
  const std::string tag = HeaderOf(page, "ETag");
  const HttpResponse again = Get(files, "/", {{"if-none-match", tag}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(HeaderOf(again, "ETag"), tag);
  const std::string policy = HeaderOf(page, "Content-Security-Policy");
  EXPECT_TRUE(absl::StartsWith(policy, "default-src 'none';"));
  EXPECT_TRUE(absl::StrContains(policy, "script-src 'self'"));
  EXPECT_FALSE(absl::StrContains(policy, "unsafe"));
  EXPECT_EQ(HeaderOf(page, "X-Content-Type-Options"), "nosniff");
}

TEST(StaticFilesTest, LargeTextsAreCompressedForThoseWhoTakeThem) {
  const std::string text(10000, 'x');
  const StaticFiles files({{"index.html", text}});
  EXPECT_EQ(Get(files, "/").body, text);
  EXPECT_EQ(Get(files, "/", {{"accept-encoding", "gzip;q=0"}}).body, text);
  const HttpResponse small = Get(files, "/", {{"accept-encoding", "br, gzip"}});
  EXPECT_EQ(HeaderOf(small, "Content-Encoding"), "gzip");
  EXPECT_LT(small.body.size(), 200u);
  EXPECT_NE(HeaderOf(small, "ETag"), HeaderOf(Get(files, "/"), "ETag"));
}

TEST(StaticFilesTest, FoldersAreReadWithoutLinksAndHiddenFiles) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/web");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder + "/assets");
  std::filesystem::create_directories(folder + "/.git");
  EXPECT_TRUE(absl::IsInvalidArgument(StaticFiles::Load(folder, "web-dir").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(StaticFiles::Load(folder + "/none", "web-dir").status()));
  std::ofstream(folder + "/index.html") << "index";
  std::ofstream(folder + "/assets/a.js") << "a";
  std::ofstream(folder + "/.git/secret.txt") << "secret";
  std::filesystem::create_symlink("/etc/passwd", folder + "/passwd.txt");
  const auto files = StaticFiles::Load(folder, "web-dir");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(Get(**files, "/").body, "index");
  EXPECT_EQ(Get(**files, "/assets/a.js").body, "a");
  EXPECT_EQ(Get(**files, "/passwd.txt").status, 404);
  EXPECT_EQ(Get(**files, "/.git/secret.txt").status, 404);
}

}  // namespace
}  // namespace plumbline::server
